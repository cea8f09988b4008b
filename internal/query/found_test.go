package query

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// TestForms: a word of another language is found in another form, which counts as the word
// itself, and function words of the question count for nothing.
func TestForms(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	ids := map[string]string{}
	for name, s := range map[string]string{
		"german":  "Die Verbindungen zum Archiv sind gestern abgebrochen",
		"other":   "Warum und wie die Wartung verschoben ist, weiß niemand",
		"french":  "Les déploiements de l'archive ont échoué dans la nuit",
		"spanish": "Los servidores se quedaron sin espacio porque nadie borró los registros",
		"russian": "мы перенесли серверы в другой город",
	} {
		ids[w.One("team", "ann", s)] = name
	}
	for _, c := range []struct{ query, want, term, readAs string }{
		{"Warum ist die Verbindung weg", "german", "verbindung", "verbind"},
		{"Pourquoi le déploiement échoue", "french", "deploiement", ""},
		{"¿Por qué se quedó sin espacio el servidor?", "spanish", "servidor", ""},
		{"куда серверов", "russian", "серверов", "сервер"},
	} {
		res := w.search("team", "", memory.SearchRequest{Query: c.query, Mode: memory.ModeText, Limit: ptr(5), Explain: true})
		if len(res.Results) == 0 || ids[res.Results[0].ID] != c.want {
			t.Errorf("%q finds %q", c.query, texts(res.Results))
			continue
		}
		if len(res.Corrections) > 0 {
			t.Errorf("%q is corrected: %s", c.query, readAs(res))
		}
		terms := res.Results[0].Explain.Terms
		at := slices.IndexFunc(terms, func(e memory.ExplainTerm) bool { return e.Term == c.term })
		if at < 0 || terms[at].ReadAs != c.readAs || (c.readAs != "") != (terms[at].Kind == "form") {
			t.Errorf("%q: %+v has no %q as %q", c.query, terms, c.term, c.readAs)
		}
		for _, e := range terms {
			if slices.Contains([]string{"warum", "ist", "die", "le", "por", "se"}, e.Term) {
				t.Errorf("%q: the function word %q counts", c.query, e.Term)
			}
		}
	}
	// Alone they are words.
	if res := w.search("team", "", memory.SearchRequest{Query: "warum", Mode: memory.ModeText}); len(res.Results) != 1 || ids[res.Results[0].ID] != "other" {
		t.Errorf("a function word alone finds %q", texts(res.Results))
	}
}

// TestSpellings: a word is found as it is spelt on the other side of the Atlantic. That is the word
// itself, and no correction; nothing else is read as another word.
func TestSpellings(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for _, s := range []string{"the licence of the ferry", "she organizes the crew", "a grey buoy", "harbor dues are late", "the programme of the regatta", "the programmer was ill", "cancelled twice"} {
		w.One("team", "ann", s)
	}
	for range 5 {
		w.One("team", "bob", "two people are ill this week")
	}
	for query, want := range map[string]struct{ text, readAs string }{
		"license":  {"the licence of the ferry", "licenc"},
		"licences": {"the licence of the ferry", ""},
		"organise": {"she organizes the crew", "organ"},
		"gray":     {"a grey buoy", "grey"},
		"Harbours": {"harbor dues are late", "harbor"},
		"programs": {"the programme of the regatta", "programm"},
		"canceled": {"cancelled twice", ""},
	} {
		for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
			res := w.search("team", "", memory.SearchRequest{Query: query, Mode: mode, Explain: true})
			if len(res.Corrections) > 0 || len(res.Results) == 0 || !slices.Contains(texts(res.Results), want.text) {
				t.Errorf("%s %s finds %q, read as %s", mode, query, texts(res.Results), readAs(res))
				continue
			}
			for _, h := range res.Results {
				if err := checkExplain(&h); err != nil {
					t.Error(err)
				}
				if h.Text != want.text {
					continue
				}
				if v := part(&h, "matched"); math.Abs(v-1) > 1e-9 {
					t.Errorf("%s %s: of the one word %v is matched", mode, query, v)
				}
				terms := h.Explain.Terms
				if e := terms[len(terms)-1]; e.ReadAs != want.readAs || (e.ReadAs != "") != (e.Kind == "form") {
					t.Errorf("%s is explained by %+v", query, terms)
				}
			}
		}
	}
	for query, want := range map[string]int{"programmer": 2, `"license of"`: 0, `"gray buoy"`: 0, "license -licence": 0} {
		if res := w.search("team", "", memory.SearchRequest{Query: query, Mode: memory.ModeText}); len(res.Results) != want {
			t.Errorf("%s finds %q", query, texts(res.Results))
		}
	}
}

// TestFound asks as people do for what memories name in another way: beginnings, versions,
// addresses, flags, signs, inflected words. Beside vectors the floor may still be above a hit that
// only a correction brought.
func TestFound(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	ids := map[string]string{}
	for name, s := range map[string]string{
		"release":  "the API speaks v1.22.3 since March",
		"python":   "the workers still run python3.11 in the old image",
		"go":       "we build with go1.23 and nothing older",
		"commit":   "commit 3f2a9c1d7be04 broke the nightly build",
		"ulid":     "record 01JDXYZABCDEFGHJKMNPQRSTVW holds the decision",
		"uuid":     "job 6f1b8a52-9d1e-4c55-8f7e-0c2d4a6b8e90 hangs",
		"ip":       "the bastion is at 10.42.7.19, ask the network team",
		"v6":       "the gateway listens on fd00:12:34::1",
		"ticket":   "INC-2081 was closed without a fix",
		"flag":     "git commit --no-verify leaves the hooks out",
		"cpp":      "the codec is written in C++ and hard to change",
		"csharp":   "the desktop client is a C# application",
		"net":      "payments moved to .NET 8 last autumn",
		"email":    "write to ops-oncall@example.com at night",
		"url":      "the runbook is https://wiki.example.org/runbooks/failover?rev=7",
		"file":     "panic in internal/store/memtable.go:42 when the arena is full",
		"camel":    "readFromUnixGroup lists the members of a group",
		"snake":    "set max_open_files to 4096 on each node",
		"kebab":    "the x-request-id header is passed on",
		"oauth":    "login goes through OAuth2 and nothing else",
		"umlaut":   "Müller übernimmt die Rufbereitschaft",
		"compound": "die Datenbankverbindung bricht nach einer Stunde ab",
		"sharp":    "die Straße vor dem Rechenzentrum wird aufgerissen",
		"yo":       "развёртывание идёт каждую ночь",
		"russian":  "мы перенесли серверы в другой город",
		"accent":   "the café résumé lies in Łódź",
		"chinese":  "数据库的连接池已经用完了",
		"env":      "KUBECONFIG has to point to the new cluster",
		"port":     "postgres listens on localhost:5433",
		"date":     "the contract ends on 2025-03-31",
		"error":    "it fails with ECONNREFUSED and errno 111",
		"scoped":   "upgrade @angular/core before the others",
		"generic":  "std::vector<int> grows by half",
		"percent":  "the disk is 93% full",
	} {
		ids[w.One("team", "ann", s)] = name
	}
	for i := range 30 {
		w.One("team", "bob", []string{"the retrospective was moved to Friday", "nobody ordered lunch for the meeting", "the office plants need water", "two people are ill this week", "the coffee machine is out of order"}[i%5])
	}
	for _, c := range [][2]string{
		{"1.22", "release"}, {"v1.22", "release"}, {"1.22.3", "release"}, {"v1.22.3", "release"}, {"version 1.22", "release"}, {"1.22*", "release"}, {"v1.2*", "release"},
		{"python 3.11", "python"}, {"python3.11", "python"}, {"python3", "python"}, {"python", "python"}, {"3.11", "python"},
		{"go 1.23", "go"}, {"go1.23", "go"}, {"Go1.23", "go"},
		{"3f2a9c", "commit"}, {"3F2A9C1D", "commit"}, {"3f2a9c1d7be04", "commit"}, {"commit 3f2a9c1", "commit"},
		{"01JDXY", "ulid"}, {"01jdxyzabc", "ulid"}, {"01JDXYZABCDEFGHJKMNPQRSTVW", "ulid"},
		{"6f1b8a52", "uuid"}, {"6f1b8a52-9d1e-4c55-8f7e-0c2d4a6b8e90", "uuid"}, {"6f1b8a52-9d1e", "uuid"},
		{"10.42.7", "ip"}, {"10.42", "ip"}, {"10.42.7.19", "ip"}, {"10.42.*", "ip"}, {"fd00:12:34::1", "v6"},
		{"INC-2081", "ticket"}, {"inc 2081", "ticket"}, {"2081", "ticket"}, {"INC2081", "ticket"}, {"inc-20", "ticket"},
		{"--no-verify", "flag"}, {"no-verify", "flag"}, {"no verify", "flag"}, {"commit --no-verify", "flag"}, {"noverify", "flag"},
		{"C++", "cpp"}, {"c++ codec", "cpp"}, {"C#", "csharp"}, {".NET", "net"}, {".net 8", "net"}, {"dotnet", "net"},
		{"ops-oncall@example.com", "email"}, {"ops-oncall", "email"}, {"oncall@example.com", "email"}, {"ops-oncall@exam", "email"},
		{"wiki.example.org", "url"}, {"runbooks/failover", "url"}, {"https://wiki.example.org/runbooks/failover", "url"}, {"failover runbook", "url"}, {"wiki.example.org/runbooks", "url"},
		{"memtable.go:42", "file"}, {"memtable.go", "file"}, {"store/memtable.go", "file"}, {"memtable", "file"}, {"internal/store", "file"}, {"memtabel.go", "file"},
		{"readFromUnixGroup", "camel"}, {"readFromUnix", "camel"}, {"unix group", "camel"}, {"UnixGroup", "camel"}, {"readfromunixgroup", "camel"}, {"read_from_unix_group", "camel"},
		{"max_open_files", "snake"}, {"maxOpenFiles", "snake"}, {"open files", "snake"}, {"max-open-files", "snake"}, {"max_open", "snake"},
		{"x-request-id", "kebab"}, {"X-Request-ID", "kebab"}, {"request id", "kebab"},
		{"oauth", "oauth"}, {"OAuth2", "oauth"}, {"oauth 2", "oauth"},
		{"Müller", "umlaut"}, {"mueller", "umlaut"}, {"muller", "umlaut"}, {"Rufbereitschaft", "umlaut"}, {"bereitschaft", "umlaut"},
		{"datenbank", "compound"}, {"verbindung", "compound"}, {"datenbank verbindung", "compound"}, {"Datenbankverbindungen", "compound"},
		{"strasse", "sharp"}, {"Straße", "sharp"}, {"STRASSE", "sharp"},
		{"развертывание", "yo"}, {"развёртывания", "yo"}, {"развертыв*", "yo"}, {"серверов", "russian"}, {"сервер", "russian"}, {"города", "russian"},
		{"cafe resume", "accent"}, {"lodz", "accent"}, {"CAFÉ", "accent"},
		{"数据库", "chinese"}, {"连接池", "chinese"}, {"数据库 用完", "chinese"},
		{"KUBECONFIG", "env"}, {"kubeconfig", "env"}, {"kube config", "env"}, {"localhost:5433", "port"}, {"5433", "port"}, {"port 5433", "port"},
		{"2025-03-31", "date"}, {"2025-03", "date"}, {"ECONNREFUSED", "error"}, {"econnrefused 111", "error"}, {"conn refused", "error"},
		{"@angular/core", "scoped"}, {"angular core", "scoped"}, {"std::vector", "generic"}, {"vector<int>", "generic"}, {"93%", "percent"},
	} {
		for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
			res := w.search("team", "", memory.SearchRequest{Query: c[0], Mode: mode, Limit: ptr(6), All: mode == memory.ModeHybrid})
			at := slices.IndexFunc(res.Results, func(h memory.Hit) bool { return ids[h.ID] == c[1] })
			if at != 0 {
				t.Errorf("%s %q finds %s at %d of %q, read as %s", mode, c[0], c[1], at, texts(res.Results), readAs(res))
			}
		}
	}
}

// Beginnings of addresses and versions were found, and refused by the floor: the longer one wrote,
// the more of the number counted as missing.
func TestBeginningsOfNumbersWereRefused(t *testing.T) {
	for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
		w := newWorld(t)
		w.Namespace("team", withBuiltin())
		for i := range 300 {
			w.One("team", "ann", fmt.Sprintf("weather report number %d of harbour %d", i, i%7))
		}
		host := w.One("team", "ann", "the tide sidecar listens at 172.31.44.19 behind the gateway")
		version := w.One("team", "ann", "berthd was built of 3.14.7 by mason on friday evening")
		hash := w.One("team", "ann", "galley_page_size went to production with the image")
		for query, want := range map[string]string{"172.31.44": host, "172.31.44*": host, "172.31.*": host, "172.31.44.1*": host, "172.31": host,
			"v3.14.7": version, "v3.14": version, "v3.14*": version, "3.14*": version, "3.14.7": version, "galley_page": hash, "galley_p*": hash} {
			res := w.search("team", "", memory.SearchRequest{Query: query, Mode: mode, Explain: true})
			if len(res.Results) == 0 || res.Results[0].ID != want {
				t.Errorf("%s %s: %v, best refused %v, read as %s", mode, query, texts(res.Results), res.BestRefused, readAs(res))
				continue
			}
			if err := checkExplain(&res.Results[0]); err != nil {
				t.Errorf("%s %s: %v", mode, query, err)
			}
		}
	}
}

// A long note was shown by the chunk nearest to the query, in which there was none of its words.
func TestLongNoteIsShownAroundTheWords(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	var note strings.Builder
	for i := range 120 {
		fmt.Fprintf(&note, "Step %d: we looked at the service mesh, the gateway and the broker of tenant %d, and found nothing odd. ", i, i)
		if i == 90 {
			note.WriteString("In the end the root cause was a stale heliostat token of a customer. ")
		}
	}
	w.One("team", "ann", note.String())
	for _, query := range []string{"heliostat", `"heliostat token"`, "stale heliostat token in the broker", "what was the root cause"} {
		for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
			res := w.search("team", "", memory.SearchRequest{Query: query, Mode: mode})
			if len(res.Results) != 1 || !strings.Contains(res.Results[0].Snippet, "root cause was a stale heliostat") {
				t.Errorf("%s %s: %d results, snippet %q", mode, query, len(res.Results), res.Results[0].Snippet)
			}
		}
	}
}

// A log line of JSON has more than sixteen pairs of quotes, and was refused.
func TestPastedLineWithManyQuotes(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.One("team", "ann", "berth alloc: index out of range in alloc.go")
	query := `{"time":"2026-09-04T11:02:33Z","level":"error","service":"berth","logger":"alloc","msg":"index out of range","file":"alloc.go","line":"214","commit":"3f2a9c81","env":"prod"}`
	if res := w.search("team", "", memory.SearchRequest{Query: query}); len(res.Results) != 1 {
		t.Errorf("%+v", res)
	}
}
