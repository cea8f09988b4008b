package rest

import (
	"strings"
	"testing"

	"mneme/memory"
)

// TestAnswersHaveTheFieldsThatWereAskedFor, and bad requests for them are refused.
func TestAnswersHaveTheFieldsThatWereAskedFor(t *testing.T) {
	b := newBench(t, nil)
	const records = "/v1/namespaces/team/records"
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", records + "?fields=text,version", "", `{"records":[{"version":3,"text":"hi"}],"position":"p0.1.9.0"}`},
		{"GET", records + "?uri=a/b&fields=text&max_text=1", "", `{"records":[{"text":"h","truncated":true}],"position":"p0.1.2.0"}`},
		{"GET", records + "/" + recordID + "/timeline?fields=agent", "", `{"anchor":{"agent":"a1"},"before":[],"after":[],"position":""}`},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","fields":["text"],"max_text":0}`, `{"results":[],"position":"p0.1.9.0","took_ms":0,"mode":"hybrid"}`},
		{"POST", "/v1/search", `{"namespaces":["team"],"query":"x","fields":["text"]}`, `{"results":[],"position":"p0.1.9.0,p1.0.3.0","took_ms":0,"mode":"hybrid","namespaces":["team"]}`},
	} {
		if rec := b.do(c.method, c.path, c.body); rec.Code != 200 || strings.TrimSpace(rec.Body.String()) != c.want {
			t.Errorf("%s %s %s: %d %s\nwant %s", c.method, c.path, c.body, rec.Code, rec.Body, c.want)
		}
	}
	if rec := b.do("GET", records+"?uri=a/b", ""); !strings.Contains(rec.Body.String(), `"text":"hi"`) || strings.Contains(rec.Body.String(), "truncated") {
		t.Errorf("by uri: %s", rec.Body)
	}
	for _, c := range []struct{ method, path, body, says string }{
		{"GET", records + "?max_text=-1", "", "max_text"},
		{"GET", records + "?max_text=262145", "", "max_text"},
		{"GET", records + "?max_text=many", "", "max_text"},
		{"GET", records + "?budget=0", "", "budget"},
		{"GET", records + "?budget=10000001", "", "budget"},
		{"GET", records + "/" + recordID + "/timeline?budget=0", "", "budget"},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","budget":0}`, "budget is 0 tokens"},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","budget":-1}`, "budget"},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","budget":1.5}`, "budget"},
		{"GET", records + "?fields=score", "", `"score" is unknown`},
		{"GET", records + "?fields=text,,uri", "", `"" is unknown`},
		{"GET", records + "?fields=text&fields=uri", "", "2 times"},
		{"GET", records + "?uri=a/b&fields=score", "", `"score" is unknown`},
		{"GET", records + "/" + recordID + "/timeline?max_text=-1", "", "max_text"},
		{"GET", records + "/" + recordID + "/timeline?fields=score", "", `"score" is unknown`},
		{"GET", records + "/" + recordID + "?fields=text", "", "unknown here"},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","max_text":-1}`, "max_text"},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","max_text":1e9}`, "max_text"},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","fields":["tokens"]}`, `"tokens" is unknown`},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","fields":"text"}`, "fields"},
		{"POST", "/v1/namespaces/team/search", `{"query":"x","min_score":1.5}`, "min_score"},
		{"POST", "/v1/search", `{"namespaces":["team"],"query":"x","fields":["tokens"]}`, `"tokens" is unknown`},
	} {
		rec := b.do(c.method, c.path, c.body)
		if p := problemOf(t, rec); p.Code != memory.CodeInvalid || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, rec.Code, rec.Body)
		}
	}
}
