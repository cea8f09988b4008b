package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"mneme/client"
	"mneme/memory"
)

// Words that occur nowhere but in what must not be seen.
const (
	privateWord = "zyzzogeton"
	foreignWord = "quaxolotl"
	sharedWord  = "lighthouse"
)

// openAPI is what the test needs of the document.
type openAPI struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name, In string
			Required bool
		} `json:"parameters"`
	} `json:"paths"`
}

// TestPrivateAndForeignTextIsNeverSeen walks every route of the interface, the
// services, feeds, streams, metrics and logs as somebody who may see neither an
// agent's private memory nor another namespace's.
func TestPrivateAndForeignTextIsNeverSeen(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir(), "--log-level", "debug", "--namespace", "default", "--namespace", "elsewhere")
	nc := d.bus()
	feeds, err := nc.SubscribeSync("mem.feed.default.team.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	secret := memory.Capture{Agent: "owner", Scope: memory.ScopeAgent, ID: "s1", Conversation: privateWord, URI: "notes/" + privateWord,
		Text: "the " + sharedWord + " keeper hides a " + privateWord, Tags: []string{privateWord}, Metadata: []byte(`{"k":"` + privateWord + `"}`)}
	private, err := d.client.Capture(t.Context(), "default", secret, client.CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := d.client.Capture(t.Context(), "elsewhere", memory.Capture{Agent: "tester", Text: "a " + sharedWord + " of the " + foreignWord}, client.CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	open := d.capture("default", "the "+sharedWord+" is open on Sundays")
	secrets := []string{private.Results[0].RecordID, foreign.Results[0].RecordID}

	// The fault would bite: their owners do find them.
	for ns, who := range map[string]string{"default": "owner", "elsewhere": "tester"} {
		r, err := d.clientAs(who).Search(t.Context(), ns, memory.SearchRequest{Query: sharedWord})
		if err != nil || !strings.Contains(fmt.Sprint(texts(r.Results)), map[string]string{"default": privateWord, "elsewhere": foreignWord}[ns]) {
			t.Fatalf("the owner does not find it: %v, %v", texts(r.Results), err)
		}
	}
	leak := func(where, text string) {
		t.Helper()
		for _, w := range []string{privateWord, foreignWord} {
			if strings.Contains(strings.ToLower(text), w) {
				t.Errorf("%s shows %q: %.600s", where, w, text)
			}
		}
	}
	_, spec := d.call("GET", "/openapi.json", "")
	var doc openAPI
	mustJSON(t, spec, &doc)
	calls := 0
	for path, operations := range doc.Paths {
		for method, op := range operations {
			method = strings.ToUpper(method)
			if method == "DELETE" || path == "/v1/admin/backup/keys" {
				continue
			}
			for _, record := range append(secrets, open.RecordID) {
				for _, as := range []string{"", "tester", "stranger"} {
					target := strings.NewReplacer("{ns}", "default", "{id}", record).Replace(path)
					query := []string{}
					for _, p := range op.Parameters {
						if p.In == "query" && p.Name == "follow" {
							query = append(query, "follow=false")
						}
						if p.In == "query" && p.Name == "from" {
							query = append(query, "from=p0.0.0.0")
						}
					}
					if len(query) > 0 {
						target += "?" + strings.Join(query, "&")
					}
					body := ""
					if method != "GET" {
						body = `{"query":"` + sharedWord + `","limit":200}`
					}
					var header []string
					if as != "" {
						header = []string{"Mneme-Agent", as}
					}
					_, answer := d.call(method, target, body, header...)
					calls++
					leak(method+" "+target+" as "+as, answer)
					if strings.Contains(path, "{id}") || !strings.HasPrefix(path, "/v1/namespaces/{ns}") {
						continue
					}
					for _, id := range secrets {
						if strings.Contains(answer, id) {
							t.Errorf("%s %s as %q names the record %s: %.400s", method, target, as, id, answer)
						}
					}
				}
			}
		}
	}
	if calls < 60 {
		t.Errorf("only %d calls were made", calls)
	}
	guessed := []string{
		`{"query":"` + privateWord + `"}`, `{"query":"x","filter":{"tags":["` + privateWord + `"]}}`, `{"query":"` + sharedWord + `","filter":{"agents":["owner"]}}`,
		`{"query":"` + sharedWord + `","filter":{"scope":"agent"}}`, `{"query":"` + sharedWord + `","filter":{"conversation":"` + privateWord + `"}}`,
		`{"query":"` + sharedWord + `","mode":"vector","limit":200}`, `{"query":"` + sharedWord + `","mode":"text","limit":200,"explain":true}`,
	}
	for _, q := range guessed {
		for _, as := range []string{"", "tester", "stranger"} {
			_, byREST := d.call("POST", "/v1/namespaces/default/search", q, "Mneme-Agent", as)
			m, err := nc.RequestMsg(&nats.Msg{Subject: "mem.api.default.search", Data: []byte(q), Header: nats.Header{"Mneme-Agent": {as}}}, patience)
			if err != nil {
				t.Fatal(err)
			}
			for _, answer := range []string{byREST, string(m.Data)} {
				var r memory.SearchResponse
				mustJSON(t, answer, &r)
				for _, h := range r.Results {
					if slices.Contains(secrets, h.ID) {
						t.Errorf("%s as %q finds %s", q, as, h.ID)
					}
				}
			}
		}
	}
	for _, ask := range []string{"get", "timeline"} {
		for _, id := range secrets {
			m, err := nc.Request("mem.api.default."+ask, fmt.Appendf(nil, `{"id":%q,"as":"tester"}`, id), patience)
			if err != nil {
				t.Fatal(err)
			}
			leak(ask, string(m.Data))
			if !strings.Contains(string(m.Data), "not_found") {
				t.Errorf("%s of a hidden record: %s", ask, m.Data)
			}
		}
	}
	m, err := nc.Request("mem.api.default.get", fmt.Appendf(nil, `{"uri":"notes/%s","as":"tester"}`, privateWord), patience)
	if err != nil || !strings.Contains(string(m.Data), "not_found") {
		t.Errorf("get by uri: %s, %v", m.Data, err)
	}
	for _, args := range [][]string{{"list"}, {"audit"}, {"export"}, {"status"}, {"doctor"}, {"rejected"}, {"quarantine"}, {"tail", "--from", "p0.0.0.0"}, {"search", sharedWord}, {"get", secrets[0]}, {"history", secrets[0]}, {"timeline", secrets[0]}} {
		if args[0] == "tail" {
			continue // it follows; the stream is read above
		}
		e := memctl(t, "", []string{"MNEME_ADDR=" + d.http, "MNEME_AGENT=tester", "MNEME_NAMESPACE=default"}, append(args, "--json")...)
		leak("memctl "+strings.Join(args, " "), e.out+e.err)
	}
	// What the team's feed carried: the open memory and nothing of the private one.
	last := d.capture("default", "the end of the feed")
	for {
		m, err := feeds.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		leak("feed "+m.Subject, string(m.Data))
		if strings.Contains(string(m.Data), last.RecordID) {
			break
		}
	}
	leak("standard error", d.stderr.String())
	d.term()
	leak("standard error", d.stderr.String())
}

func TestNoPlaintextOnDisk(t *testing.T) {
	t.Parallel()
	d := launch{self: true}.start(t, t.TempDir()) // with Raft snapshots
	// The one stands in texts, the other in what becomes rows of attributes.
	word, derived := "xylocanthropus", "pterodactylus"
	for i := range 30 {
		c := memory.Capture{Agent: "tester", ID: fmt.Sprint(word, i), Text: fmt.Sprintf("%s number %d sat on a wall", word, i), URI: fmt.Sprintf("%s/%d", derived, i), Tags: []string{derived},
			Conversation: derived, Subject: word, Role: word, Metadata: []byte(`{"` + word + `":1}`)}
		if _, err := d.client.Capture(t.Context(), "default", c, client.CaptureOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	text := "a new version of " + word
	all := d.everything("default")
	if _, err := d.client.Revise(t.Context(), "default", all[0].RecordID, memory.Revision{Text: &text}, client.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.call("POST", "/v1/namespaces/default/events", `{"agent":"tester","text":"`+word+`","kind":"nonsense"}`) // refused and listed
	ask(t, d.bus(), "mem.in.default.tester.capture", []byte(`{"text":"`+word+`","nonsense":1}`), nil)
	if r, err := d.operator().Rejected(t.Context()); err != nil || !strings.Contains(toJSON(t, r), word) {
		t.Errorf("the malformed message is not kept: %v", err)
	}
	d.must("rebuild")
	if got := d.find("default", word); len(got) == 0 {
		t.Fatal("it cannot be found at all")
	}
	scan := func(when string) {
		t.Helper()
		seen := int64(0)
		for _, name := range files(t, d.dir) {
			b, err := os.ReadFile(filepath.Join(d.dir, name))
			if err != nil {
				continue // a file that the store removed meanwhile
			}
			seen += int64(len(b))
			for _, w := range []string{word, derived, "sat on a wall", "humpty"} {
				switch {
				case strings.Contains(strings.ToLower(name), w):
					t.Errorf("%s: a file is named %s", when, name)
				case bytes.Contains(bytes.ToLower(b), []byte(w)):
					t.Errorf("%s: %s holds %q", when, name, w)
				}
			}
		}
		if seen < 10_000 {
			t.Errorf("%s: only %d bytes were there to look at", when, seen)
		}
	}
	scan("while running")
	d.term()
	scan("after stopping")
	if strings.Contains(d.stderr.String(), word) {
		t.Errorf("the log holds it:\n%s", d.stderr)
	}
	d = launch{self: true}.start(t, d.dir)
	d.kill()
	scan("after a kill")
}

func TestHostAndOriginAreChecked(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir(), "--allowed-host", "memory.example")
	const search = "/v1/namespaces/default/search"
	port := d.http[strings.LastIndex(d.http, ":"):]
	for _, tc := range []struct {
		status int
		header []string
	}{
		{200, nil}, {200, []string{"Host", "localhost" + port}}, {200, []string{"Host", "memory.example"}},
		{403, []string{"Host", "attacker.example"}}, {403, []string{"Host", "attacker.example" + port}},
		{403, []string{"Origin", "https://attacker.example"}}, {403, []string{"Origin", "null"}},
		{403, []string{"Sec-Fetch-Site", "cross-site"}}, {200, []string{"Origin", d.http}},
	} {
		status, body := d.call("POST", search, `{"query":"x"}`, tc.header...)
		if status != tc.status {
			t.Errorf("%v: %d %s, want %d", tc.header, status, body, tc.status)
		}
		if status == http.StatusForbidden {
			refusedREST(t, status, body, memory.CodeForbidden)
		}
	}
}

func TestTokenOnBothTransports(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]launch{
		"from the file":        {args: []string{"--auth", "token"}},
		"from the environment": {args: []string{"--auth", "token"}, env: []string{"MNEME_AUTH_TOKEN=open-sesame-open-sesame-open"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := l.start(t, dir)
			status, body := d.call("GET", "/v1/status", "")
			refusedREST(t, status, body, memory.CodeUnauthenticated)
			status, body = d.call("POST", "/v1/namespaces/default/events", `{"agent":"a","text":"x"}`, "Authorization", "Bearer wrong")
			refusedREST(t, status, body, memory.CodeUnauthenticated)
			for _, open := range []string{"/livez", "/readyz", "/openapi.json"} {
				if status, _ := d.call("GET", open, ""); status != 200 {
					t.Errorf("%s: %d", open, status)
				}
			}
			if status, _ := d.call("GET", "/metrics", ""); status != 401 {
				t.Errorf("/metrics without a token: %d", status)
			}
			plainEnd(t, d.memctl("status"), 4)
			for _, opts := range [][]nats.Option{nil, {nats.Token("wrong")}, {nats.UserInfo("a", "wrong")}} {
				if nc, err := nats.Connect(d.nats, append(opts, nats.MaxReconnects(0))...); err == nil {
					nc.Close()
					t.Errorf("NATS lets a stranger in")
				}
			}
			token := "open-sesame-open-sesame-open"
			if l.env == nil {
				file := filepath.Join(dir, "keys", "operator.token")
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				token = strings.TrimSpace(string(b))
				if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", file, info.Mode(), err)
				}
				if e := memctl(t, "", []string{"MNEME_ADDR=" + d.http}, "status", "--token-file", file); e.code != 0 {
					t.Errorf("--token-file: %s", e.err)
				}
			}
			d.token = token
			d.client = d.clientAs("tester")
			d.capture("default", "with a token")
			for i, opt := range []nats.Option{nats.Token(token), nats.UserInfo("anybody", token)} {
				if ack, code := ask(t, d.bus(opt), "mem.in.default.tester.capture", fmt.Appendf(nil, "by NATS %d", i), nil); code != 0 {
					t.Errorf("%v", ack)
				}
			}
			if all := d.everything("default"); len(all) != 3 {
				t.Errorf("%d records", len(all))
			}
			d.must("status")
			if strings.Contains(d.stderr.String(), token) {
				t.Error("the token is in the log")
			}
		})
	}
}
