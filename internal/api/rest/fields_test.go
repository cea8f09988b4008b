package rest

import (
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// full fails the test if a field of a request has no value here: whoever adds one
// has to say how callers set it.
func full[T any](t *testing.T, req T) T {
	t.Helper()
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) {
		if v.IsZero() {
			t.Errorf("%s has no value in this test: give it one, and see that every surface carries it", name)
		}
		if v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			walk(name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
	walk(reflect.TypeFor[T]().Name(), reflect.ValueOf(req))
	return req
}

// TestEveryFieldReachesTheReader sends requests with every field set through the
// client over REST. client.List had no scope and client.Audit no until, while the
// node had both: each surface had a shape of its own.
func TestEveryFieldReachesTheReader(t *testing.T) {
	b := newBench(t, nil)
	srv := httptest.NewServer(b.s)
	defer srv.Close()
	c, err := client.New(srv.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at, later := day, day.Add(time.Hour)
	two, five, half := 2, 5, 0.5
	access := full(t, memory.Access{Namespace: "team", As: "ann", AtLeast: "p0.0.1.0", Consistency: memory.ConsistencyLinearizable})
	read := client.ReadOptions{As: access.As, AtLeast: access.AtLeast, Consistency: access.Consistency}
	filter := memory.Filter{Agents: []string{"ann", "bob"}, Kinds: []memory.Kind{memory.KindFact}, Tags: []string{"t", "u"}, Since: &at, Until: &later,
		Scope: memory.ScopeAgent, Conversation: "k"}
	fit := memory.Fit{MaxText: &five, Fields: []string{"text", "uri"}, Budget: &five}
	list := full(t, memory.ListRequest{Cursor: "c", Limit: 5, Filter: filter, Purpose: memory.PurposeInject, Fit: fit})
	audit := full(t, memory.AuditRequest{Cursor: "c", From: "p0.0.1.0", Limit: 9, Actor: "bob", Type: "memory.forgotten", Since: &at, Until: &later})
	audited := full(t, memory.AuditedReadsRequest{Cursor: "c", Limit: 9, Agent: "bob", Record: recordID, Since: &at, Until: &later})
	timeline := full(t, memory.TimelineRequest{ID: "r", Before: &two, After: &five, Fit: fit})
	search := full(t, memory.SearchRequest{Query: "q", Syntax: memory.SyntaxPlain, As: access.As, Limit: &five, Mode: memory.ModeText, MinScore: &half, All: true, Filter: &filter, AsOf: "p0.0.1.0",
		AtLeast: access.AtLeast, Consistency: access.Consistency, Explain: true, Purpose: memory.PurposeInject, Vector: []float64{1},
		Parts: map[memory.Part]bool{memory.PartDates: false}, Fit: fit})
	several := full(t, memory.SearchNamespaces{Namespaces: []string{"team", "sales"}, SearchRequest: search})
	nowhere := access
	nowhere.Namespace = ""
	ctx := t.Context()
	for _, tt := range []struct {
		name string
		call func() error
		want []any
	}{
		{"list", func() error {
			_, err := c.List(ctx, "team", client.ListOptions{ReadOptions: read, ListRequest: list})
			return err
		}, []any{access, list}},
		{"audit", func() error {
			_, err := c.Audit(ctx, "team", client.AuditOptions{ReadOptions: read, AuditRequest: audit})
			return err
		}, []any{access, audit}},
		{"audited reads", func() error {
			_, err := client.AuditedReads(ctx, c, "team", client.AuditedReadsOptions{ReadOptions: read, AuditedReadsRequest: audited})
			return err
		}, []any{access, audited}},
		{"timeline", func() error {
			_, err := c.Timeline(ctx, "team", "r", client.TimelineOptions{ReadOptions: read, Before: timeline.Before, After: timeline.After, Fit: fit})
			return err
		}, []any{access, timeline}},
		{"search", func() error { _, err := c.Search(ctx, "team", search); return err }, []any{access, search}},
		{"search several", func() error { _, err := c.SearchNamespaces(ctx, several.Namespaces, search); return err }, []any{nowhere, several}},
		{"get", func() error {
			_, err := c.Get(ctx, "team", "r", client.GetOptions{ReadOptions: read, Version: 3})
			return err
		}, []any{access, "r", 3}},
		{"history", func() error { _, err := c.History(ctx, "team", "r", read); return err }, []any{access, "r"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.call(); err != nil {
				t.Fatal(err)
			}
			b.f.mu.Lock()
			defer b.f.mu.Unlock()
			if !reflect.DeepEqual(b.f.args, tt.want) {
				t.Errorf("the reader got %+v\nwant %+v", b.f.args, tt.want)
			}
		})
	}
}
