package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mneme/client"
	"mneme/internal/eventlog"
	"mneme/internal/importer"
	"mneme/memory"
)

// foreignNATS is a NATS that is not ours, configured as memctl nats-config says,
// with or without syncing: its address for the node, and of its monitoring.
// Port -1 picks one.
func foreignNATS(t *testing.T, dir string, port, monitorPort int, sync bool) (s *server.Server, address, monitor string) {
	t.Helper()
	text := strings.NewReplacer("$MNEME_NATS_NODE_PASSWORD", "n", "$MNEME_NATS_AGENTS_PASSWORD", "a", "$MNEME_NATS_SYSTEM_PASSWORD", "s",
		"127.0.0.1:4222", fmt.Sprintf("127.0.0.1:%d", port), "127.0.0.1:8222", fmt.Sprintf("127.0.0.1:%d", monitorPort), "/var/lib/nats", dir).Replace(eventlog.ExternalConfig(eventlog.ExternalServer{}))
	if !sync {
		text = strings.Replace(text, "sync_interval: always", "sync_interval: 1m", 1)
	}
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o.NoLog, o.NoSigs = true, true
	s, err = server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the foreign NATS is not ready")
	}
	return s, strings.Replace(s.ClientURL(), "nats://", "nats://mneme-node:n@", 1), "http://" + s.MonitorAddr().String()
}

func TestExternalNATS(t *testing.T) {
	t.Parallel()
	_, url, monitor := foreignNATS(t, t.TempDir(), -1, -1, true)
	dir := t.TempDir()
	with := []string{"--nats-url", url, "--nats-monitor", monitor}
	d := start(t, dir, with...)
	want := populate(t, d)
	if ack, code := ask(t, d.bus(nats.UserInfo("mneme-agents", "a")), "mem.in.default.tester.capture", []byte("over a foreign bus"), nil); code != 0 {
		t.Errorf("%v", ack)
	}
	if got := d.find("default", "foreign bus"); len(got) == 0 || got[0] != "over a foreign bus" {
		t.Errorf("found %q", got)
	}
	if strings.Contains(strings.Join(files(t, dir), " "), ".blk") {
		t.Error("there is a log in the data directory")
	}
	now := d.truth()
	d.kill()
	if err := os.RemoveAll(filepath.Join(dir, "shards")); err != nil {
		t.Fatal(err)
	}
	d = start(t, dir, with...)
	if got := d.truth(); got != now || got.records != want.records+1 {
		t.Errorf("built from the foreign log: %s with %d records, want %s with %d", got.hash, got.records, now.hash, now.records)
	}
	d.term()
}

func TestExternalNATSWithoutProofOfSyncing(t *testing.T) {
	t.Parallel()
	_, url, monitor := foreignNATS(t, t.TempDir(), -1, -1, false)
	for name, args := range map[string][]string{
		"does not sync": {"--nats-url", url, "--nats-monitor", monitor},
		"no proof":      {"--nats-url", url},
		"nobody there":  {"--nats-url", "nats://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			d, e := launch{args: args}.attempt(t, t.TempDir())
			if d != nil {
				t.Fatal("the node started")
			}
			plainEnd(t, e, 6)
		})
	}
	d := start(t, t.TempDir(), "--nats-url", url, "--dev")
	d.capture("default", "at my own risk")
	if !d.status().Dev {
		t.Error("the status does not say dev")
	}
	d.term()
}

func TestExternalNATSGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s, url, monitor := foreignNATS(t, store, -1, -1, true)
	d := start(t, t.TempDir(), "--nats-url", url, "--nats-monitor", monitor)
	d.capture("default", "before the outage")
	s.Shutdown()
	s.WaitForShutdown()
	if got := d.find("default", "outage"); len(got) != 1 {
		t.Errorf("reads are down with the log: %q", got)
	}
	ctx, cancel := contextFor(t, 2*time.Second)
	_, err := d.client.Capture(ctx, "default", memory.Capture{Agent: "tester", ID: "during", Text: "during the outage"}, client.CaptureOptions{})
	cancel()
	if err == nil {
		t.Fatal("a write was acknowledged without a log")
	}
	foreignNATS(t, store, port(t, url), port(t, monitor), true) // which has to prove again that it syncs
	eventually(t, "writes to go on", func() bool {
		ctx, cancel := contextFor(t, 5*time.Second)
		defer cancel()
		_, err := d.client.Capture(ctx, "default", memory.Capture{Agent: "tester", ID: "during", Text: "during the outage"}, client.CaptureOptions{})
		return err == nil
	})
	var got []string
	for _, r := range d.everything("default") {
		got = append(got, r.Text)
	}
	if fmt.Sprint(got) != "[before the outage during the outage]" {
		t.Errorf("records %q", got)
	}
	d.term()
}

func port(t *testing.T, raw string) int {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// embedder plays an OpenAI server. Its vectors know one synonym: what is about
// ships points one way, everything else another.
type embedder struct {
	*httptest.Server
	down  atomic.Bool
	asked atomic.Int64
}

const embedderDimensions = 8

func newEmbedder(t *testing.T) *embedder {
	e := &embedder{}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	return e
}

func (e *embedder) serve(w http.ResponseWriter, r *http.Request) {
	e.asked.Add(1)
	if e.down.Load() {
		http.Error(w, `{"error":{"message":"out of order"}}`, http.StatusServiceUnavailable)
		return
	}
	var req struct {
		Input json.RawMessage `json:"input"`
	}
	var inputs []string
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || json.Unmarshal(req.Input, &inputs) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	type item struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float64 `json:"embedding"`
	}
	data := make([]item, len(inputs))
	for i, text := range inputs {
		v := make([]float64, embedderDimensions)
		v[1], v[2+len(text)%6] = 1, 0.1
		if strings.Contains(text, "vessel") || strings.Contains(text, "ship") {
			v[0], v[1] = 1, 0
		}
		data[i] = item{"embedding", i, v}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": "toy", "data": data, "usage": map[string]int{"prompt_tokens": 1, "total_tokens": 1}})
}

func TestExternalEmbedderThatIsDown(t *testing.T) {
	t.Parallel()
	e := newEmbedder(t)
	dir := t.TempDir()
	how := launch{args: []string{"--embedder", "openai", "--embedder-url", e.URL, "--embedder-model", "toy", "--embedder-dimensions", fmt.Sprint(embedderDimensions)}, env: []string{"OPENAI_API_KEY=sk-canary-key"}}
	d := how.start(t, dir)
	d.capture("default", "bread and butter")
	r, err := d.client.Capture(t.Context(), "default", memory.Capture{Agent: "tester", Text: "a vessel came in"}, client.CaptureOptions{Wait: memory.WaitSearchable})
	if err != nil || r.Results[0].Vectors == "pending" {
		t.Fatalf("%+v, %v", r, err)
	}
	e.down.Store(true)
	status, body := d.call("POST", "/v1/namespaces/default/events?wait=searchable", `{"agent":"tester","text":"another vessel left for Corfu"}`)
	if status != 202 || !strings.Contains(body, `"pending"`) {
		t.Errorf("wait=searchable without an embedder: %d %s", status, body)
	}
	if got := d.find("default", "Corfu"); len(got) == 0 || got[0] != "another vessel left for Corfu" {
		t.Errorf("by text: %q", got)
	}
	if s := d.shard(); s.PendingVectors == 0 {
		t.Errorf("no vector is pending: %+v", s)
	}
	d.kill() // what is pending stays so
	d = how.start(t, dir)
	if s := d.shard(); s.PendingVectors == 0 {
		t.Errorf("no vector is pending after a restart: %+v", s)
	}
	e.down.Store(false)
	eventually(t, "the vectors to follow", func() bool { return d.shard().PendingVectors == 0 })
	eventually(t, "a search by vector", func() bool {
		limit := 2
		res, err := d.client.Search(t.Context(), "default", memory.SearchRequest{Query: "ship", Mode: memory.ModeVector, Limit: &limit})
		got := texts(res.Results)
		slices.Sort(got)
		return err == nil && fmt.Sprint(got) == "[a vessel came in another vessel left for Corfu]"
	})
	if strings.Contains(d.stderr.String(), "sk-canary-key") {
		t.Error("the key is in the log")
	}
	if _, st := d.call("GET", "/v1/status", ""); strings.Contains(st, "sk-canary-key") {
		t.Error("the key is in the status")
	}
	want := d.shard()
	e.down.Store(true) // a rebuild needs no model
	asked := e.asked.Load()
	var rebuilt memory.RebuildReport
	mustJSON(t, d.must("rebuild", "--json"), &rebuilt)
	if rebuilt.Shards[0].StateHash != want.StateHash || e.asked.Load() != asked {
		t.Errorf("rebuilt %+v, want %s; the model was asked %d times", rebuilt.Shards[0], want.StateHash, e.asked.Load()-asked)
	}
}

// realData finds a file of the test data, which is no part of the repository.
func realData(t *testing.T, name string) string {
	t.Helper()
	dirs := []string{os.Getenv("MNEME_DATA")}
	for at, _ := os.Getwd(); at != filepath.Dir(at); at = filepath.Dir(at) {
		dirs = append(dirs, filepath.Join(at, "shared", "data"))
	}
	for _, dir := range dirs {
		if p := filepath.Join(dir, name); dir != "" {
			if _, err := os.Stat(p); err == nil {
				return p
			}
		}
	}
	t.Skipf("no test data: set MNEME_DATA to a folder with %s", name)
	return ""
}

func TestImportedConversationsAreFound(t *testing.T) {
	t.Parallel()
	file := realData(t, "locomo/dev.json")
	if testing.Short() {
		t.Skip("short")
	}
	d := start(t, t.TempDir())
	for range 2 { // the second time adds nothing
		if e := d.memctl("import", "--format", "locomo", file); e.code != 0 {
			t.Fatalf("import: %d %s%s", e.code, e.out, e.err)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := importer.Open("locomo", f, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	turns := uint64(0)
	for {
		_, err := src.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *importer.ItemError
		if err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
		if err == nil {
			turns++
		}
	}
	if got := d.shard().Records; got != turns || turns == 0 {
		t.Errorf("%d records of %d turns", got, turns)
	}
	again, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	questions, _, err := importer.Questions(again)
	if err != nil {
		t.Fatal(err)
	}
	nc := d.bus()
	asked, found := 0, 0
	for _, q := range questions {
		if q.Category == 5 || len(q.Evidence) == 0 || asked == 150 {
			continue
		}
		asked++
		ns, limit := importer.MakeName(q.Sample), 10
		req := memory.SearchRequest{Query: q.Question, Limit: &limit}
		byREST, err := d.client.Search(t.Context(), ns, req)
		if err != nil {
			t.Fatal(err)
		}
		m, err := nc.Request("mem.api."+ns+".search", []byte(toJSON(t, req)), patience)
		if err != nil {
			t.Fatal(err)
		}
		var byNATS memory.SearchResponse
		mustJSON(t, string(m.Data), &byNATS)
		byREST.TookMS, byNATS.TookMS = 0, 0
		if toJSON(t, byREST) != toJSON(t, byNATS) {
			t.Errorf("%q: REST and NATS answer differently", q.Question)
		}
		if slices.ContainsFunc(byREST.Results, func(h memory.Hit) bool { return slices.Contains(q.Evidence, path.Base(h.URI)) }) {
			found++
		}
	}
	t.Logf("%d of %d questions find a turn with evidence among ten", found, asked)
	if found*2 < asked {
		t.Errorf("only %d of %d questions find a turn with evidence", found, asked)
	}
}

func TestSmallDiskFillsUp(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short")
	}
	disk := t.TempDir()
	smallDisk(t, disk, "400m")
	dir := filepath.Join(disk, "data")
	d := start(t, dir)
	want := populate(t, d)
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast, 400<<20)
	var err error
	eventually(t, "a refusal", func() bool {
		_, err = d.client.Capture(t.Context(), "default", memory.Capture{Agent: "tester", Text: "one too many"}, client.CaptureOptions{})
		return err != nil
	})
	if memory.CodeOf(err) != memory.CodeNoSpace {
		t.Errorf("a full disk: %v", err)
	}
	held := d.truth()
	if held.records < want.records || len(d.find("default", "lighthouse")) == 0 {
		t.Errorf("reads: %+v", held)
	}
	plainEnd(t, d.memctl("capture", "-n", "default", "x"), 6)
	d.term()
	full, e := launch{}.attempt(t, dir)
	if full != nil {
		t.Fatal("the node starts without a byte of space")
	}
	plainEnd(t, e, 1, "are free on the disk")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	d = start(t, dir)
	if got := d.truth(); got != held {
		t.Errorf("with space again: %s with %d, want %s with %d", got.hash, got.records, held.hash, held.records)
	}
	d.capture("default", "there is space again")
	sameEverywhere(t, d)
}

// fill writes until the filesystem is full or size is reached.
func fill(t *testing.T, name string, size int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for n := 0; n < size; n += len(chunk) {
		if _, err := f.Write(chunk); err != nil {
			return
		}
	}
	t.Fatal("the disk did not fill up")
}
