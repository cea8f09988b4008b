package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/client"
	"mneme/memory"
)

// problem is what all three ways of refusing have in common.
type problem struct {
	Status int         `json:"status"`
	Code   memory.Code `json:"code"`
	Detail string      `json:"detail"`
	Hint   string      `json:"hint"`
}

const (
	long    = 300 << 10
	notText = "caf\xe9 \xff\xfe"
)

// badCaptures are bodies that no way takes, with the code of the refusal.
func badCaptures() map[string]struct {
	body string
	code memory.Code
} {
	type c = struct {
		body string
		code memory.Code
	}
	return map[string]c{
		"empty text":       {`{"text":""}`, memory.CodeInvalid},
		"blank text":       {`{"text":" \n\t "}`, memory.CodeInvalid},
		"not UTF-8":        {`{"text":"` + notText + `"}`, memory.CodeInvalid},
		"NUL-filled":       {`{"text":"` + strings.Repeat(`\u0000`, 50) + `"}`, memory.CodeInvalid},
		"300 KiB":          {`{"text":"` + strings.Repeat("m", long) + `"}`, memory.CodeTooLarge},
		"malformed":        {`{"text":"a"`, memory.CodeInvalid},
		"trailing":         {`{"text":"a"} {"text":"b"}`, memory.CodeInvalid},
		"unknown field":    {`{"text":"a","importence":1}`, memory.CodeInvalid},
		"wrong type":       {`{"text":"a","tags":"one"}`, memory.CodeInvalid},
		"text is a number": {`{"text":7}`, memory.CodeInvalid},
		"bad kind":         {`{"text":"a","kind":"secret"}`, memory.CodeInvalid},
		"bad scope":        {`{"text":"a","scope":"all"}`, memory.CodeInvalid},
		"bad time":         {`{"text":"a","occurred_at":"yesterday"}`, memory.CodeInvalid},
		"importance":       {`{"text":"a","importance":1.5}`, memory.CodeInvalid},
		"metadata":         {`{"text":"a","metadata":[1]}`, memory.CodeInvalid},
		"id with a space":  {`{"text":"a","id":"one two"}`, memory.CodeInvalid},
		"twice the field":  {`{"text":"a","text":"b"}`, memory.CodeInvalid},
	}
}

// refusedREST checks the one clear problem of a refused request.
func refusedREST(t *testing.T, status int, body string, code memory.Code) {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("status %d, body is no problem document: %.300s", status, body)
	}
	if status != code.HTTPStatus() || p.Status != status || p.Code != code || p.Detail == "" {
		t.Errorf("status %d, %.300s; want %d %s", status, body, code.HTTPStatus(), code)
	}
	noStack(t, body)
}

func TestBadInputByREST(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	before := d.capture("default", "what was there before")
	hash := d.shard()
	const events = "/v1/namespaces/default/events"
	for name, tc := range badCaptures() {
		t.Run("capture "+name, func(t *testing.T) {
			body := strings.Replace(tc.body, `{"text"`, `{"agent":"tester","text"`, 1)
			status, answer := d.call("POST", events, body)
			refusedREST(t, status, answer, tc.code)
		})
	}
	good := `{"agent":"tester","text":"fine"}`
	for name, tc := range map[string]struct {
		method, path, body string
		code               memory.Code
		header             []string
	}{
		"unknown namespace":        {"POST", "/v1/namespaces/nowhere/events", good, memory.CodeNotFound, nil},
		"invalid namespace":        {"POST", "/v1/namespaces/Team%20A/events", good, memory.CodeInvalid, nil},
		"reserved namespace":       {"POST", "/v1/namespaces", `{"name":"_system"}`, memory.CodeInvalid, nil},
		"search without namespace": {"POST", "/v1/namespaces//search", `{"query":"x"}`, memory.CodeNotFound, nil},
		"search unknown namespace": {"POST", "/v1/namespaces/nowhere/search", `{"query":"x"}`, memory.CodeNotFound, nil},
		"list unknown namespace":   {"GET", "/v1/namespaces/nowhere/records", "", memory.CodeNotFound, nil},
		"audit unknown namespace":  {"GET", "/v1/namespaces/nowhere/audit", "", memory.CodeNotFound, nil},
		"export unknown namespace": {"GET", "/v1/namespaces/nowhere/export", "", memory.CodeNotFound, nil},
		"events unknown namespace": {"GET", "/v1/namespaces/nowhere/events?follow=false", "", memory.CodeNotFound, nil},
		"namespace there already":  {"POST", "/v1/namespaces", `{"name":"default"}`, memory.CodeConflict, nil},
		"unknown setting":          {"PATCH", "/v1/namespaces/default", `{"settings":{"no.such":"1"}}`, memory.CodeInvalid, nil},
		"no agent":                 {"POST", events, `{"text":"who says so?"}`, memory.CodeInvalid, nil},
		"bad agent":                {"POST", events, `{"agent":"A B","text":"x"}`, memory.CodeInvalid, nil},
		"bad wait":                 {"POST", events + "?wait=never", good, memory.CodeInvalid, nil},
		"unknown parameter":        {"GET", "/v1/namespaces/default/records?agnet=a", "", memory.CodeInvalid, nil},
		"empty batch":              {"POST", events, `[]`, memory.CodeInvalid, nil},
		"big batch":                {"POST", events, "[" + strings.Repeat(good+",", 1000) + good + "]", memory.CodeTooLarge, nil},
		"9 MiB":                    {"POST", events, "[" + strings.Repeat(" ", 9<<20) + good + "]", memory.CodeTooLarge, nil},
		"NaN vector":               {"POST", "/v1/namespaces/default/search", `{"query":"x","vector":[NaN]}`, memory.CodeInvalid, nil},
		"infinite vector":          {"POST", "/v1/namespaces/default/search", `{"query":"x","mode":"vector","vector":[1e999]}`, memory.CodeInvalid, nil},
		"wrong dimensions":         {"POST", "/v1/namespaces/default/search", `{"query":"x","mode":"vector","vector":[1,2,3]}`, memory.CodeInvalid, nil},
		"empty query":              {"POST", "/v1/namespaces/default/search", `{"query":""}`, memory.CodeInvalid, nil},
		"limit 0":                  {"POST", "/v1/namespaces/default/search", `{"query":"x","limit":0}`, memory.CodeInvalid, nil},
		"limit 201":                {"POST", "/v1/namespaces/default/search", `{"query":"x","limit":201}`, memory.CodeInvalid, nil},
		"unknown search field":     {"POST", "/v1/namespaces/default/search", `{"query":"x","filters":{}}`, memory.CodeInvalid, nil},
		"long query":               {"POST", "/v1/namespaces/default/search", `{"query":"` + strings.Repeat("q", 17<<10) + `"}`, memory.CodeTooLarge, nil},
		"bad position":             {"GET", "/v1/namespaces/default/records?at_least=tomorrow", "", memory.CodeInvalid, nil},
		"position not reached":     {"GET", "/v1/namespaces/default/records?at_least=p0.0.999999.0", "", memory.CodeStalePosition, nil},
		"bad record id":            {"GET", "/v1/namespaces/default/records/one", "", memory.CodeNotFound, nil},
		"unknown record":           {"GET", "/v1/namespaces/default/records/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", memory.CodeNotFound, nil},
		"revise unknown":           {"PATCH", "/v1/namespaces/default/records/01ARZ3NDEKTSV4RRFFQ69G5FAV?as=tester", `{"text":"x"}`, memory.CodeNotFound, nil},
		"revise stale":             {"PATCH", "/v1/namespaces/default/records/" + before.RecordID + "?as=tester", `{"text":"x"}`, memory.CodeConflict, []string{"If-Match", "7"}},
		"bad If-Match":             {"DELETE", "/v1/namespaces/default/records/" + before.RecordID + "?as=tester", "", memory.CodeInvalid, []string{"If-Match", "soon"}},
		"forget without an actor":  {"DELETE", "/v1/namespaces/default/records/" + before.RecordID, "", memory.CodeInvalid, nil},
		"no such route":            {"GET", "/v1/nothing", "", memory.CodeNotFound, nil},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := d.call(tc.method, tc.path, tc.body, tc.header...)
			refusedREST(t, status, answer, tc.code)
		})
	}
	if after := d.shard(); after.StateHash != hash.StateHash || after.Position != hash.Position {
		t.Errorf("refused requests changed the state: %s %s, before %s %s", after.Position, after.StateHash, hash.Position, hash.StateHash)
	}
	if all := d.everything("default"); len(all) != 1 || all[0].RecordID != before.RecordID {
		t.Errorf("after the refusals there are %d records", len(all))
	}
}

func TestBatchWithGoodAndBadItems(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	status, body := d.call("POST", "/v1/namespaces/default/events", `[
		{"agent":"a","id":"1","text":"first good"},
		{"agent":"a","id":"2","text":""},
		{"agent":"a","id":"3","text":"`+strings.Repeat("x", long)+`"},
		{"agent":"a","id":"1","text":"first good"},
		{"agent":"a","id":"1","text":"another body"},
		{"agent":"a","id":"6","text":"kind is bad","kind":"nonsense"},
		{"agent":"a","id":"7","text":"last good"}]`)
	if status != 200 {
		t.Fatalf("status %d: %s", status, body)
	}
	var r memory.CaptureResponse
	mustJSON(t, body, &r)
	want := []memory.ItemStatus{"created", "rejected", "rejected", "duplicate", "conflict", "rejected", "created"}
	for i, res := range r.Results {
		if res.Status != want[i] {
			t.Errorf("item %d is %s, want %s (%+v)", i, res.Status, want[i], res.Error)
		}
		bad := want[i] == "rejected" || want[i] == "conflict"
		if bad != (res.Error != nil) || bad && (res.Error.Code == "" || res.Error.Detail == "") {
			t.Errorf("item %d: error %+v", i, res.Error)
		}
	}
	if len(r.Results) != len(want) {
		t.Fatalf("%d results", len(r.Results))
	}
	if r.Results[2].Error.Code != memory.CodeTooLarge {
		t.Errorf("300 KiB: %+v", r.Results[2].Error)
	}
	all := d.everything("default")
	if len(all) != 2 || all[0].Text != "first good" || all[1].Text != "last good" {
		t.Errorf("records are %+v", all)
	}
	// All bad is still an answer to each.
	status, body = d.call("POST", "/v1/namespaces/default/events", `[{"agent":"a","text":""},{"agent":"a","text":""}]`)
	if status != 200 || strings.Count(body, `"rejected"`) != 2 {
		t.Errorf("all bad: %d %s", status, body)
	}
}

// ask publishes with a reply and returns the answer's error, or nil.
func ask(t *testing.T, nc *nats.Conn, subject string, data []byte, header nats.Header) (ack map[string]any, code int) {
	t.Helper()
	m, err := nc.RequestMsg(&nats.Msg{Subject: subject, Data: data, Header: header}, patience)
	if err != nil {
		t.Fatalf("request %s: %v", subject, err)
	}
	mustJSON(t, string(m.Data), &ack)
	if e, ok := ack["error"].(map[string]any); ok {
		if e["description"] == "" {
			t.Errorf("%s: an error without words: %s", subject, m.Data)
		}
		return ack, int(e["code"].(float64))
	}
	return ack, 0
}

func TestBadInputByNATS(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	before := d.capture("default", "what was there before")
	hash := d.shard()
	nc := d.bus()
	const subject = "mem.in.default.tester.capture"
	for name, tc := range badCaptures() {
		t.Run("capture "+name, func(t *testing.T) {
			ack, code := ask(t, nc, subject, []byte(tc.body), nats.Header{"Content-Type": {"application/json"}})
			if code != tc.code.HTTPStatus() {
				t.Errorf("%v, want %d", ack, tc.code.HTTPStatus())
			}
		})
	}
	for name, tc := range map[string]struct {
		subject string
		body    string
		header  nats.Header
		code    memory.Code
	}{
		"unknown namespace":  {"mem.in.nowhere.tester.capture", "x", nil, memory.CodeNotFound},
		"invalid namespace":  {"mem.in.Team-A.tester.capture", "x", nil, memory.CodeInvalid},
		"missing namespace":  {"mem.in.tester.capture", "x", nil, memory.CodeInvalid},
		"invalid agent":      {"mem.in.default.A-7.capture", "x", nil, memory.CodeInvalid},
		"plain not UTF-8":    {subject, notText, nil, memory.CodeInvalid},
		"plain NUL":          {subject, strings.Repeat("\x00", 100), nil, memory.CodeInvalid},
		"plain empty":        {subject, "", nil, memory.CodeInvalid},
		"plain 300 KiB":      {subject, strings.Repeat("m", long), nil, memory.CodeTooLarge},
		"another agent":      {subject, `{"text":"x","agent":"other"}`, nil, memory.CodeInvalid},
		"expected sequence":  {subject, "x", nats.Header{"Nats-Expected-Last-Sequence": {"1"}}, memory.CodeInvalid},
		"bad wait":           {subject, "x", nats.Header{"Mneme-Wait": {"never"}}, memory.CodeInvalid},
		"bad content type":   {subject, "x", nats.Header{"Content-Type": {"image/png"}}, memory.CodeInvalid},
		"bad CloudEvent":     {subject, `{"specversion":"0.1","id":"1"}`, nil, memory.CodeInvalid},
		"bad binary CE":      {subject, "x", nats.Header{"ce-specversion": {"1.0"}}, memory.CodeInvalid},
		"search unknown ns":  {"mem.api.nowhere.search", `{"query":"x"}`, nil, memory.CodeNotFound},
		"search empty":       {"mem.api.default.search", `{"query":""}`, nil, memory.CodeInvalid},
		"search malformed":   {"mem.api.default.search", `{"query"`, nil, memory.CodeInvalid},
		"search NaN":         {"mem.api.default.search", `{"query":"x","vector":[NaN]}`, nil, memory.CodeInvalid},
		"search dimensions":  {"mem.api.default.search", `{"query":"x","mode":"vector","vector":[1]}`, nil, memory.CodeInvalid},
		"get nothing":        {"mem.api.default.get", `{}`, nil, memory.CodeInvalid},
		"get unknown":        {"mem.api.default.get", `{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}`, nil, memory.CodeNotFound},
		"timeline of no one": {"mem.api.default.timeline", `{"before":1}`, nil, memory.CodeInvalid},
		"revise by nobody":   {"mem.api.default.revise", `{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","text":"x"}`, nil, memory.CodeInvalid},
		"revise unknown":     {"mem.api.default.revise", `{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","as":"agent-7","text":"x"}`, nil, memory.CodeNotFound},
		"revise unknown ns":  {"mem.api.nowhere.revise", `{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","as":"agent-7","text":"x"}`, nil, memory.CodeNotFound},
		"forget no id":       {"mem.api.default.forget", `{"id":"oncall","as":"agent-7"}`, nil, memory.CodeInvalid},
		"forget unknown":     {"mem.api.default.forget", `{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","as":"agent-7"}`, nil, memory.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := nc.RequestMsg(&nats.Msg{Subject: tc.subject, Data: []byte(tc.body), Header: tc.header}, patience)
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				problem
				Error *struct {
					Code        int    `json:"code"`
					Description string `json:"description"`
				} `json:"error"`
			}
			mustJSON(t, string(m.Data), &got)
			status, words := got.Status, got.Detail
			if got.Error != nil {
				status, words = got.Error.Code, got.Error.Description
			}
			if status != tc.code.HTTPStatus() || words == "" {
				t.Errorf("%s, want %d", m.Data, tc.code.HTTPStatus())
			}
			noStack(t, string(m.Data))
		})
	}
	if after := d.shard(); after.StateHash != hash.StateHash || after.Position != hash.Position {
		t.Errorf("refused messages changed the state")
	}
	if all := d.everything("default"); len(all) != 1 || all[0].RecordID != before.RecordID {
		t.Errorf("after the refusals there are %d records", len(all))
	}
	eventually(t, "the refusals, which are answered first, to be listed", func() bool {
		r, err := d.operator().Rejected(t.Context())
		return err == nil && len(r.Rejected) >= 20 && r.Counts["invalid"] >= 10 && r.Counts["not_found"] >= 1
	})
}

// A publish without a reply is refused in silence, but listed.
func TestRefusedPublishWithoutReplyIsListed(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	nc := d.bus()
	if err := nc.Publish("mem.in.nowhere.tester.capture", []byte("into the void")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the refusal to be listed", func() bool {
		r, err := d.operator().Rejected(t.Context())
		return err == nil && len(r.Rejected) == 1 && r.Rejected[0].Code == memory.CodeNotFound && r.Rejected[0].Via == "nats"
	})
	if r, _ := d.operator().Rejected(t.Context()); r.Rejected[0].Body != "" {
		t.Errorf("the body of a well-formed message is kept: %q", r.Rejected[0].Body)
	}
}

func TestBadInputByMemctl(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	before := d.capture("default", "what was there before")
	hash := d.shard()
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		code  memory.Code
	}{
		"unknown namespace":  {[]string{"capture", "-n", "nowhere", "x"}, "", memory.CodeNotFound},
		"invalid namespace":  {[]string{"capture", "-n", "Team A", "x"}, "", memory.CodeInvalid},
		"missing namespace":  {[]string{"capture", "x"}, "", memory.CodeInvalid},
		"empty text":         {[]string{"capture", "-n", "default", ""}, "", memory.CodeInvalid},
		"not UTF-8":          {[]string{"capture", "-n", "default", "-"}, notText, memory.CodeInvalid},
		"NUL":                {[]string{"capture", "-n", "default", "-"}, "\x00\x00\x00", memory.CodeInvalid},
		"300 KiB":            {[]string{"capture", "-n", "default", "-"}, strings.Repeat("m", long), memory.CodeTooLarge},
		"bad kind":           {[]string{"capture", "-n", "default", "--kind", "nonsense", "x"}, "", memory.CodeInvalid},
		"unknown flag":       {[]string{"capture", "-n", "default", "--colour", "x"}, "", memory.CodeInvalid},
		"unknown verb":       {[]string{"remembre", "x"}, "", memory.CodeInvalid},
		"search nowhere":     {[]string{"search", "-n", "nowhere", "x"}, "", memory.CodeNotFound},
		"search limit":       {[]string{"search", "-n", "default", "--limit", "0", "x"}, "", memory.CodeInvalid},
		"get unknown":        {[]string{"get", "-n", "default", "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "", memory.CodeNotFound},
		"forget unasked":     {[]string{"forget", "-n", "default", before.RecordID}, "", memory.CodeInvalid},
		"namespace conflict": {[]string{"namespace", "create", "default"}, "", memory.CodeConflict},
		"malformed import":   {[]string{"import", "-n", "default", "--format", "jsonl", "-"}, `{"text":`, memory.CodeInvalid},
		"not reached":        {[]string{"search", "-n", "default", "--at-least", "p0.0.99999.0", "x"}, "", memory.CodeStalePosition},
	} {
		t.Run(name, func(t *testing.T) {
			env := []string{"MNEME_ADDR=" + d.http, "MNEME_AGENT=tester"}
			plainEnd(t, memctl(t, tc.stdin, env, tc.args...), tc.code.ExitCode(), "memctl: ")
			e := memctl(t, tc.stdin, env, append([]string{"--json"}, tc.args...)...)
			var doc struct {
				Error struct {
					Code    memory.Code
					Message string
				}
			}
			if e.code != tc.code.ExitCode() || json.Unmarshal([]byte(e.err), &doc) != nil || doc.Error.Code != tc.code || doc.Error.Message == "" {
				t.Errorf("--json: %d, stdout %q, stderr %s; want %s", e.code, e.out, e.err, tc.code)
			}
		})
	}
	if after := d.shard(); after.StateHash != hash.StateHash {
		t.Errorf("refused commands changed the state")
	}
	if e := memctl(t, "", []string{"MNEME_ADDR=127.0.0.1:1"}, "status"); e.code != 6 {
		t.Errorf("nobody listens: exit %d: %s", e.code, e.err)
	}
}

// The same key with another body is a conflict by every way, and the first body
// stays.
func TestReusedKeyWithAnotherBody(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	const path = "/v1/namespaces/default/events"
	if status, body := d.call("POST", path, `{"agent":"tester","id":"k","text":"the first"}`); status != http.StatusOK {
		t.Fatal(body)
	}
	status, body := d.call("POST", path, `{"agent":"tester","id":"k","text":"the second"}`)
	refusedREST(t, status, body, memory.CodeConflict)
	status, body = d.call("POST", path, `{"agent":"tester","text":"the third"}`, "Idempotency-Key", "k")
	refusedREST(t, status, body, memory.CodeConflict)
	nc := d.bus()
	if ack, code := ask(t, nc, "mem.in.default.tester.capture", []byte("the fourth"), nats.Header{"Nats-Msg-Id": {"k"}}); code != 409 {
		t.Errorf("NATS: %v", ack)
	}
	if ack, code := ask(t, nc, "mem.in.default.tester.capture", []byte("the first"), nats.Header{"Nats-Msg-Id": {"k"}}); code != 0 || ack["duplicate"] != true {
		t.Errorf("NATS, the same body: %v", ack)
	}
	// Another agent's key is another key.
	if ack, code := ask(t, nc, "mem.in.default.other.capture", []byte("the fifth"), nats.Header{"Nats-Msg-Id": {"k"}}); code != 0 || ack["duplicate"] != false {
		t.Errorf("another agent: %v", ack)
	}
	e := memctl(t, `{"id":"k","agent":"tester","text":"the sixth"}`+"\n"+`{"id":"k2","agent":"tester","text":"the seventh"}`+"\n",
		[]string{"MNEME_ADDR=" + d.http}, "import", "-n", "default", "--format", "jsonl", "--json", "-")
	if e.code == 0 {
		t.Errorf("memctl import of a conflict ended with 0: %s %s", e.out, e.err)
	}
	var got []string
	for _, r := range d.everything("default") {
		got = append(got, r.Text)
	}
	if want := "[the first the fifth the seventh]"; fmt.Sprint(got) != want {
		t.Errorf("records %v, want %s", got, want)
	}
	if _, err := d.client.Capture(t.Context(), "default", memory.Capture{ID: "k", Agent: "tester", Text: "eighth"}, client.CaptureOptions{}); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("client: %v", err)
	}
}

// eventually polls until it holds; it fails after patience.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		<-tick.C
	}
}
