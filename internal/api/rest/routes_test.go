package rest

import (
	"net/http"
	"strings"
	"testing"

	"mneme/memory"
)

func TestCallsAndAnswers(t *testing.T) {
	const ns = "/v1/namespaces/team"
	const rec = ns + "/records/" + recordID
	tests := []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		call, answer             string // what they must contain
	}{
		{"create", "POST", "/v1/namespaces", `{"name":"team","settings":{"a":"b"}}`, nil, 201, `CreateNamespace {"name":"team","settings":{"a":"b"}}`, `"name":"team"`},
		{"namespaces", "GET", "/v1/namespaces?limit=7&cursor=sales", "", nil, 200, `Namespaces {"Cursor":"sales","Limit":7}`, `{"namespaces":[{"name":"team"`},
		{"namespace", "GET", ns, "", nil, 200, `Namespace "team"`, `"name":"team"`},
		{"patch", "PATCH", ns, `{"settings":{"a":null,"b":"1"}}`, nil, 200, `ChangeNamespace "team" {"settings":{"a":null,"b":"1"}}`, ""},
		{"delete", "DELETE", ns, "", nil, 200, `DeleteNamespace "team"`, `{"name":"team","position":"p0.1.45.0"}`},
		{"embedder", "GET", ns + "/embedder", "", nil, 200, `Embedder "team"`, `"phase":"filling","done":3,"total":7`},
		{"switch", "POST", ns + "/embedder", `{"provider":"ollama","model":"m:v1","dimensions":3}`, nil, 202,
			`SwitchEmbedder "team" {"provider":"ollama","model":"m:v1","dimensions":3}`, `"state":"building"`},
		{"switch to the same", "POST", ns + "/embedder", `{"provider":"builtin"}`, nil, 200, `SwitchEmbedder "team" {"provider":"builtin"}`, ""},
		{"cancel", "DELETE", ns + "/embedder/building", "", nil, 200, `CancelSwitch "team"`, `"namespace":"team"`},
		{"list", "GET", ns + "/records?kind=fact&kind=error&tag=x&tag=y&agent=b&scope=agent&conversation=c&since=2026-01-02T03:04:05Z&until=2026-01-03T00:00:00%2B01:00&purpose=inject&limit=7&cursor=k&as=me&at_least=p0.1.2.0&consistency=linearizable", "", nil, 200,
			`List {"Namespace":"team","As":"me","AtLeast":"p0.1.2.0","Consistency":"linearizable"} {"Cursor":"k","Limit":7,"Filter":{"agents":["b"],"kinds":["fact","error"],"tags":["x","y"],"since":"2026-01-02T03:04:05Z","until":"2026-01-03T00:00:00+01:00","scope":"agent","conversation":"c"},"Purpose":"inject"}`, `"records":[`},
		{"by uri", "GET", ns + "/records?uri=notes/a", "", nil, 200, `"mem://team/notes/a" 0`, `"records":[`},
		{"get", "GET", rec, "", []string{"Mneme-Agent", "me"}, 200, `Get {"Namespace":"team","As":"me","AtLeast":"","Consistency":""} "` + recordID + `" 0`, `"version":3`},
		{"get version", "GET", rec + "?version=2&as=you", "", []string{"Mneme-Agent", "me"}, 200, `"As":"you"`, ""},
		{"get escaped", "GET", ns + "/records/mem:%2F%2Fteam%2Fa", "", nil, 200, `"mem://team/a" 0`, ""},
		{"revise", "PATCH", rec + "?as=me", `{"text":"new","tags":[]}`, []string{"If-Match", `"3"`, "Idempotency-Key", "k1"}, 200, `Revise "team" "me" "` + recordID + `" {"text":"new","tags":[]} 3 "k1"`, `"version":4`},
		{"revise any", "PATCH", rec, `{}`, []string{"If-Match", "*"}, 200, `{} 0 ""`, ""},
		{"forget", "DELETE", rec, "", []string{"If-Match", "2", "Mneme-Agent", "me"}, 200, `Forget "team" "me" "` + recordID + `" 2`, `"record_id"`},
		{"history", "GET", rec + "/history", "", nil, 200, "History", `"versions"`},
		{"timeline", "GET", rec + "/timeline", "", nil, 200, `"before":3,"after":3}`, `"anchor"`},
		{"timeline sides", "GET", rec + "/timeline?before=0&after=9", "", nil, 200, `"before":0,"after":9}`, ""},
		{"search", "POST", ns + "/search", `{"query":"q","at_least":"p0.1.1.0","consistency":"local","filter":{"tags":["a"]}}`, []string{"Mneme-Agent", "me"}, 200,
			`Search {"Namespace":"team","As":"me","AtLeast":"p0.1.1.0","Consistency":"local"} {"query":"q","as":"me"`, `"results":[]`},
		{"search as", "POST", ns + "/search?as=b", `{"query":"q","as":"a"}`, []string{"Mneme-Agent", "c"}, 200, `"As":"a"`, ""},
		{"search several", "POST", "/v1/search?as=me", `{"namespaces":["team","sales"],"query":"q","at_least":"p0.1.1.0,p1.0.2.0","consistency":"linearizable"}`, nil, 200,
			`SearchNamespaces {"Namespace":"","As":"me","AtLeast":"p0.1.1.0,p1.0.2.0","Consistency":"linearizable"} {"namespaces":["team","sales"],"query":"q","as":"me"`,
			`{"results":[],"position":"p0.1.9.0,p1.0.3.0","took_ms":0,"mode":"hybrid","namespaces":["team","sales"]}`},
		{"change graph", "POST", ns + "/graph?as=me", `{"subject":"ada","operations":[{"create_entities":[]},{"delete_relations":[{"from":"a","to":"b","relationType":"c"}]}]}`, []string{"Idempotency-Key", "k1"}, 400, "", "only add"},
		{"change graph as", "POST", ns + "/graph?as=me", `{"operations":[{"create_entities":[]},{"delete_relations":[{"from":"a","to":"b","relationType":"c"}]}]}`, []string{"Idempotency-Key", "k1"}, 200,
			`ChangeGraph "team" {"id":"k1","agent":"me","operations":[{"create_entities":[]},{"delete_relations":[{"from":"a","to":"b","relationType":"c"}]}]}`,
			`{"position":"p0.1.9.0","status":"applied","results":[{"entities":[]},{"deleted":{}}]}`},
		{"change graph by itself", "POST", ns + "/graph?as=me", `{"id":"k2","agent":"ann","operations":[{"delete_entities":["a"]}]}`, []string{"Idempotency-Key", "k1"}, 200,
			`ChangeGraph "team" {"id":"k2","agent":"ann","operations":[{"delete_entities":["a"]}]}`, ""},
		{"graph", "GET", ns + "/graph?as=me&at_least=p0.1.1.0", "", nil, 200, `Graph {"Namespace":"team","As":"me","AtLeast":"p0.1.1.0","Consistency":""} {"Query":null,"Names":null}`,
			`{"entities":[{"name":"Alice","entityType":"person","observations":["likes Go"]}],"relations":[{"from":"Alice","to":"b","relationType":"c"}],"position":"p0.1.9.0"}`},
		{"search graph", "GET", ns + "/graph?query=", "", nil, 200, `{"Query":"","Names":null}`, ""},
		{"open graph", "GET", ns + "/graph?name=a&name=b%20c", "", nil, 200, `{"Query":null,"Names":["a","b c"]}`, ""},
		{"open nothing", "GET", ns + "/graph?name=", "", nil, 200, `{"Query":null,"Names":[]}`, ""},
		{"open one and nothing", "GET", ns + "/graph?name=&name=a", "", nil, 200, `{"Query":null,"Names":["a"]}`, ""},
		{"search and open", "GET", ns + "/graph?name=a&query=b", "", nil, 400, "", "one of them"},
		{"stream graph", "GET", ns + "/graph/export", "", nil, 200, `"Consistency":""} ""`,
			`{"type":"entity","name":"Alice","entityType":"person","observations":["likes Go"]}` + "\n" + `{"type":"relation","from":"Alice","to":"b","relationType":"c"}` + "\n"},
		{"stream graph after", "GET", ns + "/graph/export?after=b%20c", "", nil, 200, `"Consistency":""} "b c"`, ""},
		{"audit", "GET", ns + "/audit?since=2026-01-02T03:04:05Z&until=2026-02-02T03:04:05Z&actor=b&type=memory.forgotten&from=p0.1.1.0&limit=9&cursor=c", "", nil, 200, `{"Cursor":"c","From":"p0.1.1.0","Limit":9,"Actor":"b","Type":"memory.forgotten","Since":"2026-01-02T03:04:05Z","Until":"2026-02-02T03:04:05Z"}`, `"rows"`},
		{"audited reads", "GET", ns + "/audit/reads?since=2026-01-02T03:04:05Z&until=2026-02-02T03:04:05Z&agent=b&record=" + recordID + "&limit=9&cursor=c", "", nil, 200, `{"Cursor":"c","Limit":9,"Agent":"b","Record":"` + recordID + `","Since":"2026-01-02T03:04:05Z","Until":"2026-02-02T03:04:05Z"}`, `"reads"`},
		{"status", "GET", "/v1/status", "", nil, 200, "Status", `"cluster_id":"c"`},
		{"version", "GET", "/v1/admin/version", "", nil, 200, "", `"version":"1.2.3"`},
		{"doctor", "GET", "/v1/admin/doctor", "", nil, 200, "Doctor", `"ok":true`},
		{"rejected", "GET", "/v1/admin/rejected?limit=5", "", nil, 200, "Rejected 5", `"counts"`},
		{"quarantine", "GET", "/v1/admin/quarantine", "", nil, 200, "Quarantine", `"quarantined"`},
		{"upgrade", "GET", "/v1/admin/upgrade", "", nil, 200, "Upgrade", `"level":3`},
		{"finish upgrade", "POST", "/v1/admin/upgrade", "", nil, 200, "FinishUpgrade", `"level":4`},
		{"put in quarantine", "POST", "/v1/admin/quarantine", `{"position":"p0.1.2.3","reason":"r"}`, []string{"Mneme-Agent", "me"}, 200, `PutInQuarantine {"position":"p0.1.2.3","reason":"r","as":"me"}`, `"position":"p0.1.2.3"`},
		{"live", "GET", "/livez", "", nil, 200, "", "ok"},
		{"ready", "GET", "/readyz", "", nil, 200, "", `"ready":true`},
		{"ready, verbose", "GET", "/readyz?verbose", "", nil, 200, "", `"name":"state"`},
		{"metrics", "GET", "/metrics", "", nil, 200, "", "metrics"},
		{"page", "GET", "/", "", nil, 200, "", "<!doctype html>"},
		{"head", "HEAD", "/v1/status", "", nil, 200, "Status", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil)
			rec := b.do(tt.method, tt.path, tt.body, tt.headers...)
			if rec.Code != tt.status {
				t.Fatalf("status = %d, want %d\n%s", rec.Code, tt.status, rec.Body)
			}
			if !strings.Contains(b.lastCall(), tt.call) {
				t.Errorf("call = %s\nwant   %s", b.lastCall(), tt.call)
			}
			if !strings.Contains(rec.Body.String(), tt.answer) {
				t.Errorf("answer = %s\nwant     %s", rec.Body, tt.answer)
			}
			if rec.Header().Get("X-Request-Id") == "" || rec.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("headers = %v", rec.Header())
			}
		})
	}
}

func TestHeadersOfAnswers(t *testing.T) {
	b := newBench(t, nil)
	if got := b.do("GET", "/v1/namespaces/team/records/x", "").Header().Get("Etag"); got != `"3"` {
		t.Errorf("ETag = %s", got)
	}
	if got := b.do("PATCH", "/v1/namespaces/team/records/x", `{"text":"n"}`).Header().Get("Etag"); got != `"4"` {
		t.Errorf("ETag after a revision = %s", got)
	}
	if got := b.do("POST", "/v1/namespaces", `{"name":"team"}`).Header().Get("Location"); got != "/v1/namespaces/team" {
		t.Errorf("Location = %s", got)
	}
	if got := b.do("GET", "/livez", "", "X-Request-Id", "from-proxy").Header().Get("X-Request-Id"); got != "from-proxy" {
		t.Errorf("request id = %s", got)
	}
	if got := b.do("GET", "/livez", "", "X-Request-Id", "with space").Header().Get("X-Request-Id"); got == "with space" {
		t.Errorf("request id = %s", got)
	}
}

func TestInvalidRequests(t *testing.T) {
	const ns = "/v1/namespaces/team"
	tests := []struct {
		name, method, path, body string
		headers                  []string
		want                     string
	}{
		{"unknown parameter", "GET", ns + "/records?kinds=fact", "", nil, `"kinds" is unknown`},
		{"parameter twice", "GET", ns + "/records?limit=1&limit=2", "", nil, "given 2 times"},
		{"broken query", "GET", ns + "/records?limit=%zz", "", nil, "query string"},
		{"limit 0", "GET", ns + "/records?limit=0", "", nil, "limit"},
		{"limit 201", "GET", ns + "/records?limit=201", "", nil, "limit"},
		{"limit word", "GET", ns + "/records?limit=many", "", nil, "limit"},
		{"kind", "GET", ns + "/records?kind=idea", "", nil, `kind "idea"`},
		{"scope", "GET", ns + "/records?scope=all", "", nil, "scope"},
		{"since", "GET", ns + "/records?since=yesterday", "", nil, "RFC 3339"},
		{"agent name", "GET", ns + "/records?as=Me", "", nil, `"Me" is not a valid agent`},
		{"agent header", "GET", ns + "/records", "", []string{"Mneme-Agent", "a b"}, "valid agent"},
		{"consistency", "GET", ns + "/records?consistency=eventual", "", nil, "consistency"},
		{"uri", "GET", ns + "/records?uri=a//b", "", nil, "segment"},
		{"uri elsewhere", "GET", ns + "/records?uri=mem://other/a", "", nil, "another namespace"},
		{"version", "GET", ns + "/records/x?version=0", "", nil, "version"},
		{"history parameter", "GET", ns + "/records/x/history?limit=3", "", nil, "unknown"},
		{"before", "GET", ns + "/records/x/timeline?before=-1", "", nil, "before"},
		{"audit limit", "GET", ns + "/audit?limit=x", "", nil, "limit"},
		{"audited reads limit", "GET", ns + "/audit/reads?limit=x", "", nil, "limit"},
		{"follow", "GET", ns + "/events?follow=maybe", "", nil, "follow"},
		{"events parameter", "GET", ns + "/events?to=1", "", nil, "unknown"},
		{"export parameter", "GET", ns + "/export?to=1", "", nil, "unknown"},
		{"verbose", "GET", "/readyz?verbose=maybe", "", nil, "verbose"},
		{"master", "POST", "/v1/admin/backup/keys?master=2", "", nil, "master"},
		{"backup parameter", "GET", "/v1/admin/backup/log?x", "", nil, "unknown"},
		{"admin parameter", "GET", "/v1/admin/doctor?x", "", nil, "unknown"},
		{"rebuild parameter", "POST", "/v1/admin/rebuild?x", "", nil, "unknown"},
		{"rejected limit", "GET", "/v1/admin/rejected?limit=0", "", nil, "limit"},
		{"namespaces parameter", "GET", "/v1/namespaces?x", "", nil, "unknown"},
		{"namespace parameter", "GET", ns + "?x", "", nil, "unknown"},
		{"delete parameter", "DELETE", ns + "?x", "", nil, "unknown"},
		{"create parameter", "POST", "/v1/namespaces?x", `{"name":"a"}`, nil, "unknown"},
		{"create body", "POST", "/v1/namespaces", `{"nmae":"a"}`, nil, `"nmae" at byte 1`},
		{"patch body", "PATCH", ns, `{"settings":{"a":1}}`, nil, `"settings.a" at byte 17 must be a string`},
		{"empty body", "POST", ns + "/search", "", nil, "empty"},
		{"search type", "POST", ns + "/search", `{"query":"q","limit":"6"}`, nil, `"limit" at byte 21 must be a whole number`},
		{"search limit", "POST", ns + "/search", `{"query":"q","limit":0}`, nil, "limit is 0"},
		{"search query", "POST", ns + "/search", `{"query":" "}`, nil, "query is empty"},
		{"search twice", "POST", ns + "/search", `{"query":"a","query":"b"}`, nil, `"query" at byte 13 appears twice`},
		{"search trailing", "POST", ns + "/search", `{"query":"a"}{}`, nil, "something follows"},
		{"search actor", "POST", ns + "/search?as=A", `{"query":"a"}`, nil, "valid agent"},
		{"search parameter", "POST", ns + "/search?limit=3", `{"query":"a"}`, nil, "unknown"},
		{"if-match", "PATCH", ns + "/records/x", `{}`, []string{"If-Match", `W/"3"`}, "If-Match"},
		{"if-match two", "DELETE", ns + "/records/x", "", []string{"If-Match", `"3"`, "If-Match", `"4"`}, "If-Match"},
		{"if-match zero", "DELETE", ns + "/records/x", "", []string{"If-Match", "0"}, "If-Match"},
		{"revise key", "PATCH", ns + "/records/x", `{}`, []string{"Idempotency-Key", "a b"}, "visible ASCII"},
		{"revise field", "PATCH", ns + "/records/x", `{"agent":"b"}`, nil, `"agent"`},
		{"revise empty", "PATCH", ns + "/records/x", "", nil, "empty"},
		{"change actor", "DELETE", ns + "/records/x?as=%20", "", nil, "valid agent"},
		{"capture wait", "POST", ns + "/events?wait=forever", `{"text":"x"}`, nil, "wait"},
		{"capture origin", "POST", ns + "/events?origin=derived", `{"text":"x"}`, nil, "origin"},
		{"capture key", "POST", ns + "/events", `{"text":"x"}`, []string{"Idempotency-Key", strings.Repeat("k", 129)}, "Idempotency-Key"},
		{"capture parameter", "POST", ns + "/events?x", `{"text":"x"}`, nil, "unknown"},
		{"capture scalar", "POST", ns + "/events", `"x"`, nil, "must be an object"},
		{"capture none", "POST", ns + "/events", `[]`, nil, "nothing to remember"},
		{"capture broken", "POST", ns + "/events", `[{"text":"x"},`, nil, "malformed"},
		{"capture UTF-8", "POST", ns + "/events", "{\"text\":\"\xff\"}", nil, "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil)
			rec := b.do(tt.method, tt.path, tt.body, tt.headers...)
			p := problemOf(t, rec)
			if rec.Code != http.StatusBadRequest || p.Code != memory.CodeInvalid || !strings.Contains(p.Detail, tt.want) {
				t.Errorf("%d %+v, want 400 with %q", rec.Code, p, tt.want)
			}
			if b.lastCall() != "" {
				t.Errorf("something was called: %s", b.lastCall())
			}
		})
	}
}
