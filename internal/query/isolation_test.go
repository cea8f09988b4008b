package query

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
	"mneme/internal/query/views"
	"mneme/memory"
)

const canary = "xylocarp"

// probe calls one method in every way that might leak and prints what it gives.
type probe func(t *testing.T, w *world, r *Reader, foreign []string) string

func printed(values ...any) string {
	var b strings.Builder
	for _, v := range values {
		if err, ok := v.(error); ok && err != nil {
			e := memory.AsError(err)
			fmt.Fprintln(&b, e.Code, e.Message, e.Hint)
			continue
		}
		raw, _ := json.Marshal(v)
		b.Write(append(raw, '\n'))
	}
	return b.String()
}

// names that a curious reader would try, next to the ids it may have heard of.
func curious(foreign []string) []string {
	return append([]string{"private/" + canary, "mem://team/private/" + canary, "mem://other/private/" + canary}, foreign...)
}

// masked takes out of an answer what the question itself said.
func masked(answer, question string) string { return strings.ReplaceAll(answer, question, "?") }

var readerProbes = map[string]probe{
	"Position": nil, // the log's, which others move too
	"Close":    nil,
	"Search": func(t *testing.T, _ *world, r *Reader, _ []string) string {
		var out strings.Builder
		for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector} {
			// Beginnings, endings, misspellings and parts of what others wrote.
			for _, near := range []string{canary[:5], canary[2:], "xylocrap", "xxyloocarp", "deploy" + canary, "xylo carp", "secrts", "deplo", "deplyo nombre keeeps",
				canary[:4] + "*", "xy*", "secr* -deplo*"} {
				res, err := r.Search(context.Background(), memory.SearchRequest{Query: near, Mode: mode, Limit: ptr(50), Explain: true})
				res.Position = ""
				out.WriteString(strings.ReplaceAll(printed(res, err), near, "?"))
			}
			for _, f := range []*memory.Filter{nil, {Tags: []string{canary}}, {Agents: []string{"mallory"}}, {Conversation: canary}, {Scope: memory.ScopeTeam},
				{Since: ptr(time.Unix(0, 0)), Until: ptr(time.Unix(1e10, 0))}} {
				for _, as := range []string{"", "mallory"} {
					res, err := r.Search(context.Background(), memory.SearchRequest{Query: canary + " deploy secrets", As: as, Mode: mode, Filter: f, Limit: ptr(50), Explain: true})
					res.Position = ""
					for i := range res.Results {
						res.Results[i].Explain.Terms = nil // of the query's own words
						if f != nil && f.Tags != nil {
							t.Errorf("found by another's tag: %+v", res.Results[i])
						}
					}
					out.WriteString(printed(res, err))
				}
			}
		}
		return out.String()
	},
	"Get": func(_ *testing.T, _ *world, r *Reader, foreign []string) string {
		var out string
		for _, name := range curious(foreign) {
			for version := range 3 {
				rec, err := r.Get(context.Background(), name, version)
				out += masked(printed(rec, err), name)
			}
		}
		return out
	},
	"History": func(_ *testing.T, _ *world, r *Reader, foreign []string) string {
		var out string
		for _, name := range curious(foreign) {
			h, err := r.History(context.Background(), name)
			out += masked(printed(h, err), name)
		}
		return out
	},
	"Timeline": func(_ *testing.T, w *world, r *Reader, foreign []string) string {
		var out string
		list, err := r.List(context.Background(), memory.ListRequest{})
		w.OK(err)
		for _, rec := range list.Records {
			tl, err := r.Timeline(context.Background(), memory.TimelineRequest{ID: rec.RecordID, Before: ptr(200), After: ptr(200)})
			tl.Position = ""
			out += printed(tl, err)
		}
		for _, name := range curious(foreign) {
			tl, err := r.Timeline(context.Background(), memory.TimelineRequest{ID: name, Before: ptr(200), After: ptr(200)})
			out += masked(printed(tl, err), name)
		}
		return out
	},
	"List": func(_ *testing.T, _ *world, r *Reader, _ []string) string {
		var out string
		for _, req := range []memory.ListRequest{{}, {Filter: memory.Filter{Agents: []string{"mallory"}}}, {Filter: memory.Filter{Tags: []string{canary}}}, {Filter: memory.Filter{Conversation: canary}}} {
			list, err := r.List(context.Background(), req)
			list.Position = ""
			out += printed(list, err)
		}
		return out
	},
	"Audit": func(_ *testing.T, _ *world, r *Reader, _ []string) string {
		page, err := r.Audit(context.Background(), memory.AuditRequest{Limit: 200})
		eve, err2 := r.Audit(context.Background(), memory.AuditRequest{Actor: "mallory"})
		page.Position, eve.Position = "", ""
		return printed(page, err, eve, err2)
	},
	"AuditedReads": func(_ *testing.T, _ *world, r *Reader, foreign []string) string {
		var out string
		for _, req := range []memory.AuditedReadsRequest{{}, {Agent: "mallory"}, {Record: foreign[0]}, {Limit: 1}} {
			page, err := r.AuditedReads(context.Background(), req)
			page.Position, page.Cursor = "", ""
			out += masked(printed(page, err), foreign[0])
		}
		return out
	},
	"Note":      nil, // it says of an answer what stands in that
	"Namespace": nil, // the name by which it was opened
	"Export": func(_ *testing.T, _ *world, r *Reader, _ []string) string {
		var out string
		err := r.Export(context.Background(), func(l memory.ExportLine) error { out += printed(l); return nil })
		return out + printed(err)
	},
	"Graph": func(_ *testing.T, _ *world, r *Reader, _ []string) string {
		var out string
		for _, req := range []memory.GraphRequest{{}, {Query: ptr("")}, {Query: ptr(canary[:4])}, {Query: ptr(canary)}, {Names: []string{canary, "hub", "private " + canary}}} {
			g, err := r.Graph(context.Background(), req)
			g.Position = ""
			out += printed(g, err)
		}
		return out
	},
	"StreamGraph": func(_ *testing.T, _ *world, r *Reader, _ []string) string {
		var out string
		for _, after := range []string{"", canary, "private " + canary} {
			err := r.StreamGraph(context.Background(), after, func(l memory.GraphLine) error { out += printed(l); return nil })
			out += strings.ReplaceAll(printed(err), after, "after")
		}
		return out
	},
}

var serviceProbes = map[string]probe{
	"Open": func(_ *testing.T, w *world, r *Reader, _ []string) string {
		_, err := w.svc.Open(context.Background(), canary, r.view.Capability.Agent(), views.Freshness{})
		return masked(printed(err), canary)
	},
	"OpenEach": func(_ *testing.T, w *world, r *Reader, _ []string) string {
		_, err := w.svc.OpenEach(context.Background(), []string{"team", canary}, r.view.Capability.Agent(), views.Freshness{})
		return masked(printed(err), canary)
	},
	"Events": func(_ *testing.T, w *world, r *Reader, _ []string) string {
		var out string
		err := w.svc.Events(context.Background(), "team", r.view.Capability.Agent(), "", false, func(e memory.Event) error { out += printed(e); return nil })
		return out + printed(err)
	},
	"FeedEvents": func(t *testing.T, w *world, _ *Reader, _ []string) string {
		var out string
		for _, a := range w.Applied {
			w.OK(w.svc.FeedEvents(a, nil, func(subject string, e memory.Event) error {
				if subject == events.FeedSubject("team", events.ScopeAgent, "mallory", events.TypeCaptured) || strings.HasPrefix(subject, "mem.feed.other.") {
					return nil // where it belongs
				}
				out += printed(subject, e)
				return nil
			}))
		}
		return out
	},
	"Namespace": func(_ *testing.T, w *world, _ *Reader, _ []string) string {
		ns, err := w.svc.Namespace(context.Background(), "team")
		ns.Records, ns.StateHash, ns.Position = 0, "", "" // of the whole namespace
		return printed(ns, err)
	},
	"Namespaces": func(_ *testing.T, w *world, _ *Reader, _ []string) string {
		page, err := w.svc.Namespaces(context.Background(), memory.NamespacesRequest{})
		for i := range page.Namespaces {
			ns := &page.Namespaces[i]
			ns.Records, ns.StateHash, ns.Position = 0, "", ""
		}
		return printed(page, err)
	},
	"Embedder": func(_ *testing.T, w *world, _ *Reader, _ []string) string {
		st, _, err := w.svc.Embedder(context.Background(), "team")
		st.Records, st.Vectors, st.Position = 0, 0, "" // of the whole namespace
		return printed(st, err)
	},
}

// TestIsolation plants canaries where a reader may not look and asks every
// method there is: nothing of them comes back, and no answer changes by them,
// not even a score. A method without a probe fails the test.
func TestIsolation(t *testing.T) {
	for typ, probes := range map[reflect.Type]map[string]probe{reflect.TypeFor[*Reader](): readerProbes, reflect.TypeFor[*Service](): serviceProbes} {
		for i := range typ.NumMethod() {
			if _, ok := probes[typ.Method(i).Name]; !ok {
				t.Errorf("%s.%s has no probe: add one to isolation_test.go", typ, typ.Method(i).Name)
			}
		}
	}
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.Namespace("other", withBuiltin())
	for i := range 30 {
		w.One("team", "ann", fmt.Sprintf("deploy number %d keeps no secrets", i))
	}
	w.Capture("team", memory.Capture{Agent: "ann", Text: "deploy alone", Scope: memory.ScopeAgent})
	w.Read("team", "ann", events.ScopeTeam, w.One("team", "ann", "given to somebody"))
	w.Graph("team", "", entities(events.GraphEntity{Name: "hub", Type: "t", Observations: []string{"xylography"}}), relations(events.GraphRelation{From: "hub", To: "hub", Type: "is"}))
	collect := func(foreign []string) map[string]string {
		out := map[string]string{}
		for _, as := range []string{"", "ann", "stranger"} {
			r := w.reader("team", as)
			for _, probes := range []map[string]probe{readerProbes, serviceProbes} {
				for name, p := range probes {
					if p != nil {
						out[name+" as "+as] = p(t, w, r, foreign)
					}
				}
			}
		}
		return out
	}
	foreignBefore := []string{w.NewID().String(), w.NewID().String()}
	before := collect(foreignBefore)
	// The others: in the same namespace and in another one.
	secret := memory.Capture{ID: canary, Agent: "mallory", Text: canary + " deploy secrets " + canary, Role: canary, URI: "private/" + canary, Tags: []string{canary, "deploy"},
		Conversation: canary, Subject: canary, Scope: memory.ScopeAgent, Metadata: json.RawMessage(`{"` + canary + `":1}`)}
	foreign := w.Capture("team", secret)
	secret.Scope = memory.ScopeTeam
	foreign = append(foreign, w.Capture("other", secret)...)
	w.Read("team", "mallory", events.ScopeAgent, foreign[0])
	w.Read("other", "mallory", events.ScopeTeam, foreign[1])
	w.Graph("other", "", entities(events.GraphEntity{Name: canary, Type: canary, Observations: []string{canary}}), relations(events.GraphRelation{From: "hub", To: canary, Type: canary}))
	for range 20 { // enough to move any statistics
		w.Capture("team", memory.Capture{Agent: "mallory", Text: "deploy secrets of " + canary, Scope: memory.ScopeAgent})
		w.Capture("other", memory.Capture{Agent: "ann", Text: "deploy secrets of " + canary, Scope: memory.ScopeAgent})
	}
	after := collect(foreign)
	for name, got := range after {
		for _, sign := range append([]string{canary, "mallory"}, foreign...) {
			if strings.Contains(got, sign) {
				t.Errorf("%s tells of %q:\n%s", name, sign, got)
			}
		}
		if got != before[name] && !strings.HasPrefix(name, "FeedEvents") {
			t.Errorf("%s changed:\n%s\nbefore:\n%s", name, got, before[name])
		}
	}
	// The test would see it: the one whom it belongs to does.
	if got := printed(w.search("team", "mallory", memory.SearchRequest{Query: canary})); !strings.Contains(got, foreign[0]) {
		t.Error("mallory does not find what is hers")
	}
	if got := readAs(w.search("team", "mallory", memory.SearchRequest{Query: "xylocrap"})); !strings.Contains(got, canary) {
		t.Errorf("mallory's own word is not suggested to her: %s", got)
	}
}
