package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/internal/events"
	"mneme/internal/query/querytest"
	"mneme/internal/query/views"
	"mneme/memory"
)

func entities(all ...events.GraphEntity) events.GraphStep {
	return events.GraphStep{Kind: events.GraphEntitiesCreated, Entities: all}
}

func relations(all ...events.GraphRelation) events.GraphStep {
	return events.GraphStep{Kind: events.GraphRelationsCreated, Relations: all}
}

func (w *world) graph(ns, as string, req memory.GraphRequest) memory.Graph {
	w.T.Helper()
	r, err := w.svc.Open(context.Background(), ns, as, views.Freshness{})
	w.OK(err)
	out, err := r.Graph(context.Background(), req)
	w.OK(errors.Join(err, r.Close()))
	return out
}

func namesOf(g memory.Graph) []string {
	out := []string{}
	for _, e := range g.Entities {
		out = append(out, e.Name)
	}
	return out
}

// TestGraphReads: the official server's searches and openings, on its golden example and more.
func TestGraphReads(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Namespace("other", nil)
	if g := w.graph("team", "ann", memory.GraphRequest{}); g.Entities == nil || len(g.Entities)+len(g.Relations) > 0 || g.Position == "" {
		t.Errorf("an empty graph is %+v", g)
	}
	w.Graph("team", "", entities(events.GraphEntity{Name: "Alice", Type: "person", Observations: []string{"likes Go"}}, events.GraphEntity{Name: "memnode", Type: "project"}),
		relations(events.GraphRelation{From: "Alice", To: "memnode", Type: "works on"}, events.GraphRelation{From: "Alice", To: "Ghost", Type: "knows"}))
	w.Graph("team", "", events.GraphStep{Kind: events.GraphObservationsAdded, Added: []events.GraphAdded{{Entity: events.GraphRef{Seq: w.State.Cursor().Seq}, Contents: []string{"likes 日本語"}}}},
		entities(events.GraphEntity{Name: "ΑΛΦΑ ΣΟΦΟΣ", Type: "Wort", Observations: []string{"İstanbul'da"}}), relations(events.GraphRelation{From: "Ghost", To: "Alice", Type: "haunts"}))
	w.Graph("other", "", entities(events.GraphEntity{Name: "secret", Type: "person", Observations: []string{"likes Go"}}))
	all := []string{"Alice", "memnode", "ΑΛΦΑ ΣΟΦΟΣ"}
	for query, want := range map[string][]string{
		"LIKES": {"Alice"}, "likes go 日本": {}, "person": {"Alice"}, "MEMnode": {"memnode"}, "e": {"Alice", "memnode"}, "": all,
		"likes go": {"Alice"}, "日本": {"Alice"}, "Go\nlikes": {}, "σοφος": {"ΑΛΦΑ ΣΟΦΟΣ"}, "σοφοσ": {}, "σοφός": {}, "αλφα σοφο": {"ΑΛΦΑ ΣΟΦΟΣ"}, "ΣΟΦΟΣ": {"ΑΛΦΑ ΣΟΦΟΣ"},
		"i̇stanbul": {"ΑΛΦΑ ΣΟΦΟΣ"}, "istanbul": {}, "secret": {}, "works on": {},
	} {
		if got := namesOf(w.graph("team", "", memory.GraphRequest{Query: &query})); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	g := w.graph("team", "", memory.GraphRequest{Query: ptr("likes")})
	want := memory.Graph{Position: g.Position, Entities: []memory.GraphEntity{{Name: "Alice", Type: "person", Observations: []string{"likes Go", "likes 日本語"}}},
		Relations: []memory.GraphRelation{{From: "Alice", To: "memnode", Type: "works on"}, {From: "Alice", To: "Ghost", Type: "knows"}, {From: "Ghost", To: "Alice", Type: "haunts"}}}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("got %+v\nwant %+v", g, want)
	}
	for _, c := range []struct{ names, want []string }{
		{[]string{"memnode", "missing", "memnode", "Alice"}, []string{"Alice", "memnode"}}, {[]string{}, []string{}}, {[]string{"alice", "secret"}, []string{}},
	} {
		if got := namesOf(w.graph("team", "", memory.GraphRequest{Names: c.names})); !slices.Equal(got, c.want) {
			t.Errorf("%q opens %q, want %q", c.names, got, c.want)
		}
	}
	if g := w.graph("team", "", memory.GraphRequest{Names: []string{"memnode"}}); len(g.Relations) != 1 || g.Entities[0].Observations == nil {
		t.Errorf("%+v", g)
	}
	var lines []string
	w.OK(w.reader("team", "").StreamGraph(context.Background(), "", func(l memory.GraphLine) error {
		b, err := json.Marshal(l)
		lines = append(lines, string(b))
		return err
	}))
	if want := []string{`{"type":"entity","name":"Alice","entityType":"person","observations":["likes Go","likes 日本語"]}`,
		`{"type":"entity","name":"memnode","entityType":"project","observations":[]}`,
		`{"type":"entity","name":"ΑΛΦΑ ΣΟΦΟΣ","entityType":"Wort","observations":["İstanbul'da"]}`,
		`{"type":"relation","from":"Alice","to":"memnode","relationType":"works on"}`,
		`{"type":"relation","from":"Alice","to":"Ghost","relationType":"knows"}`,
		`{"type":"relation","from":"Ghost","to":"Alice","relationType":"haunts"}`}; !slices.Equal(lines, want) {
		t.Errorf("the stream is\n%s", strings.Join(lines, "\n"))
	}
	stop := errors.New("stop")
	for last := range lines {
		told := 0
		err := w.reader("team", "").StreamGraph(context.Background(), "", func(memory.GraphLine) error {
			if told++; told > last {
				return stop
			}
			return nil
		})
		if err != stop || told != last+1 { // as it is, and not as a failure of the graph
			t.Errorf("who stops behind %d lines was told %d: %v", last, told, err)
		}
	}
	_, err := w.reader("team", "").Graph(context.Background(), memory.GraphRequest{Query: ptr("a"), Names: []string{"b"}})
	wantCode(t, err, memory.CodeInvalid)
	gone, cancel := context.WithCancel(context.Background()) // who asked is
	cancel()
	for _, req := range []memory.GraphRequest{{}, {Names: []string{"Alice"}}, {Query: ptr("e")}} {
		if g, err := w.reader("team", "").Graph(gone, req); err == nil {
			t.Errorf("nobody is answered %+v", g)
		}
	}
	if err := w.reader("team", "").StreamGraph(gone, "", func(memory.GraphLine) error { return nil }); err == nil {
		t.Error("nobody is told the whole graph")
	}
}

// TestGraphSearchIsAScan: what is kept in memory finds what the rows say, while the graph
// grows, loses things, has parts erased, and is read by views of before.
func TestGraphSearchIsAScan(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Namespace("gone", nil)
	rnd := rand.New(rand.NewPCG(7, 7))
	word := func() string {
		return strings.Fields("Deploy tuesday Müller queue leader 部署 SNAPSHOT ß")[rnd.IntN(8)]
	}
	var things []events.GraphRef
	type reading struct {
		r     *Reader
		query string
		want  []string
	}
	var old []reading
	brute := func(g memory.Graph, query string) []string {
		out := []string{}
		for _, e := range g.Entities {
			if slices.ContainsFunc(append([]string{e.Name, e.Type}, e.Observations...), func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(query)) }) {
				out = append(out, e.Name)
			}
		}
		return out
	}
	ended, later := []string{"ada", "bob", "eve"}, 0
	for n := range 300 {
		at := w.State.Cursor().Seq + 1
		subject := append(ended, "", "", "", "")[rnd.IntN(len(ended)+4)]
		var s events.GraphStep
		switch pick := rnd.IntN(8); {
		case pick < 3 || len(things) == 0:
			s = entities(events.GraphEntity{Name: fmt.Sprint(word(), n), Type: word(), Observations: []string{word() + " " + word()}}, events.GraphEntity{Name: fmt.Sprint("second", n), Type: word()})
			things = append(things, events.GraphRef{Seq: at}, events.GraphRef{Seq: at, N: 1}, events.GraphRef{Seq: at, N: 2})
		case pick < 6:
			s = events.GraphStep{Kind: events.GraphObservationsAdded, Added: []events.GraphAdded{{Entity: things[rnd.IntN(len(things))], Contents: []string{word() + word()}}}}
			things = append(things, events.GraphRef{Seq: at})
		case pick < 7:
			subject, s = "", events.GraphStep{Kind: events.GraphEntitiesDeleted, Ended: []events.GraphRef{things[rnd.IntN(len(things))]}}
		default:
			subject, s = "", events.GraphStep{Kind: events.GraphObservationsDeleted, Ended: []events.GraphRef{things[rnd.IntN(len(things))]}}
		}
		w.Graph("team", subject, s)
		switch {
		case n%100 == 60:
			w.End("team", ended[0])
			ended = ended[1:]
		case n == 200:
			w.Drop("gone")
		case n == 250:
			w.restart()
		}
		query := word()
		if rnd.IntN(2) == 0 {
			query = strings.ToUpper(query)
		}
		g := w.graph("team", "", memory.GraphRequest{})
		want := brute(g, query)
		if got := namesOf(w.graph("team", "", memory.GraphRequest{Query: &query})); !slices.Equal(got, want) {
			t.Fatalf("after change %d %q finds %q, want %q", n, query, got, want)
		}
		if n%30 == 5 {
			old = append(old, reading{w.reader("team", ""), query, want})
		}
	}
	for _, o := range old {
		got, err := o.r.Graph(context.Background(), memory.GraphRequest{Query: &o.query})
		if err != nil || !slices.Equal(namesOf(got), o.want) {
			t.Errorf("a view of before finds %q by %q, want %q, %v", namesOf(got), o.query, o.want, err)
		}
		later += len(o.want)
	}
	if later == 0 {
		t.Error("the history is too tame")
	}
}

// TestGraphPartsAreWhatTheWholeHolds: a part has the entities that were asked for, whole, and the
// relations at them, once each and in the order of the whole graph, whether few were asked for,
// which are looked up, or many, for which everything is read.
func TestGraphPartsAreWhatTheWholeHolds(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	rnd := rand.New(rand.NewPCG(5, 5))
	name := func() string { return fmt.Sprint(1000 + rnd.IntN(150)) }
	taken := map[string]bool{}
	for range 40 {
		var all []events.GraphEntity
		var edges []events.GraphRelation
		for range 1 + rnd.IntN(4) {
			e := events.GraphEntity{Name: name(), Type: "t"}
			for range rnd.IntN(4) {
				e.Observations = append(e.Observations, fmt.Sprint("seen ", rnd.IntN(60)))
			}
			if !taken[e.Name] {
				all, taken[e.Name] = append(all, e), true
			}
			edges = append(edges, events.GraphRelation{From: name(), To: name(), Type: "knows"}, events.GraphRelation{From: e.Name, To: e.Name, Type: "is"})
		}
		w.Graph("team", "", entities(all...), relations(edges...))
	}
	whole := w.graph("team", "", memory.GraphRequest{})
	lookedUp, read, rows := 0, 0, len(whole.Entities)+len(whole.Relations)
	for _, e := range whole.Entities {
		rows += len(e.Observations)
	}
	check := func(req memory.GraphRequest, has func(e memory.GraphEntity) bool) {
		t.Helper()
		want := memory.Graph{Entities: []memory.GraphEntity{}, Relations: []memory.GraphRelation{}, Position: whole.Position}
		for _, e := range whole.Entities {
			if has(e) {
				want.Entities = append(want.Entities, e)
			}
		}
		names := namesOf(want)
		for _, r := range whole.Relations {
			if slices.Contains(names, r.From) || slices.Contains(names, r.To) {
				want.Relations = append(want.Relations, r)
			}
		}
		if got := w.graph("team", "", req); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\n got %+v\nwant %+v", req, got, want)
		}
		if lookUp*len(names) > rows {
			read++
		} else if len(want.Relations) > 0 {
			lookedUp++
		}
	}
	for range 60 {
		var names []string
		for range rnd.IntN(100) * rnd.IntN(2) {
			names = append(names, name())
		}
		names = append(names, name(), name())
		check(memory.GraphRequest{Names: names}, func(e memory.GraphEntity) bool { return slices.Contains(names, e.Name) })
		query := []string{"seen " + name()[3:], name(), "10", "11", "T", "nothing"}[rnd.IntN(6)]
		check(memory.GraphRequest{Query: &query}, func(e memory.GraphEntity) bool {
			return slices.ContainsFunc(append(e.Observations, e.Name, e.Type), func(s string) bool { return strings.Contains(s, strings.ToLower(query)) })
		})
	}
	if lookedUp < 10 || read < 10 {
		t.Errorf("%d parts were looked up, for %d everything was read: it is too tame", lookedUp, read)
	}
}

// TestGraphSearchesBesideWrites: searches at once, while observations come, find at least what
// was there before them.
func TestGraphSearchesBesideWrites(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Graph("team", "", entities(events.GraphEntity{Name: "hub", Type: "t"}))
	hub := events.GraphRef{Seq: w.State.Cursor().Seq}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := w.svc.Open(context.Background(), "team", "", views.Freshness{})
				if err != nil {
					t.Error(err)
					return
				}
				g, err := r.Graph(context.Background(), memory.GraphRequest{Query: ptr("seen")})
				if err = errors.Join(err, r.Close()); err != nil {
					t.Error(err)
					return
				}
				if len(g.Entities) == 1 && len(g.Entities[0].Observations) == 0 {
					t.Error("an entity was found by what is not there")
				}
			}
		})
	}
	for n := range 200 {
		w.Graph("team", "", events.GraphStep{Kind: events.GraphObservationsAdded, Added: []events.GraphAdded{{Entity: hub, Contents: []string{fmt.Sprint("seen ", n)}}}})
	}
	close(stop)
	wg.Wait()
	if g := w.graph("team", "", memory.GraphRequest{Query: ptr("SEEN 199")}); len(g.Entities) != 1 || len(g.Entities[0].Observations) != 200 {
		t.Errorf("%d entities", len(g.Entities))
	}
}

// TestAPageOfTheGraphReadWhatItPassedOver: pages that are put together are the whole, and what one
// reads does not grow with what lies before it.
func TestAPageOfTheGraphReadWhatItPassedOver(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	const frames, each, page = 20, 50, 25
	for n := range frames {
		step := entities()
		for i := range each {
			step.Entities = append(step.Entities, events.GraphEntity{Name: fmt.Sprint("e", n*each+i), Type: "t", Observations: []string{"a", "b", "c"}[:i%4]})
		}
		w.Graph("team", "", step)
	}
	r := w.reader("team", "")
	read := func(after string, limit int) (got []memory.GraphEntity, rows int64) {
		before, enough := w.Rows.Load(), errors.New("enough")
		err := r.StreamGraph(context.Background(), after, func(l memory.GraphLine) error {
			if got = append(got, *l.Entity); len(got) == limit {
				return enough
			}
			return nil
		})
		if err != nil && err != enough {
			t.Fatal(err)
		}
		return got, w.Rows.Load() - before
	}
	all, _ := read("", 0)
	paged, first := read("", page)
	for more := paged; len(more) == page; paged = append(paged, more...) {
		after, rows := more[page-1].Name, int64(0)
		if more, rows = read(after, page); rows > first+page || len(more) > 0 && rows < page {
			t.Errorf("the page behind %s reads %d rows, the first one %d", after, rows, first)
		}
	}
	if !reflect.DeepEqual(paged, all) || len(all) != frames*each || len(all[7].Observations) != 3 {
		t.Errorf("%d entities in pages, %d at once", len(paged), len(all))
	}
	for _, g := range []struct{ ns, after string }{{"team", "e"}, {"bare", "e1"}} {
		if g.ns == "bare" {
			w.Namespace(g.ns, nil)
		}
		err := w.reader(g.ns, "").StreamGraph(context.Background(), g.after, func(memory.GraphLine) error { return errors.New("there is no line") })
		wantCode(t, err, memory.CodeNotFound)
	}
}

// TestGraphAnswersAreBounded: too much is refused and told how to be had, as a part or a stream.
func TestGraphAnswersAreBounded(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	big := strings.Repeat("x", memory.MaxObservation)
	for n := 0; n*memory.MaxObservation <= memory.MaxGraphAnswer; n++ {
		w.Graph("team", "", entities(events.GraphEntity{Name: fmt.Sprint("e", n), Type: "t", Observations: []string{big}}))
	}
	r := w.reader("team", "")
	for _, req := range []memory.GraphRequest{{}, {Query: ptr("x")}} {
		_, err := r.Graph(context.Background(), req)
		wantCode(t, err, memory.CodeTooLarge)
		if e := memory.AsError(err); !strings.Contains(e.Hint, "search_nodes") || (req.Query == nil) != strings.Contains(e.Message, "129 entities") {
			t.Errorf("%s. %s", e.Message, e.Hint)
		}
	}
	if g := w.graph("team", "", memory.GraphRequest{Names: []string{"e3"}}); len(g.Entities) != 1 {
		t.Errorf("%d entities", len(g.Entities))
	}
	n := 0
	w.OK(r.StreamGraph(context.Background(), "", func(memory.GraphLine) error { n++; return nil }))
	if n*memory.MaxObservation <= memory.MaxGraphAnswer {
		t.Errorf("%d lines", n)
	}
	// Many small things are more than their strings.
	small := graphRead{ctx: context.Background()}
	n = 0
	for ; small.took("a") == nil; n++ {
	}
	if n > memory.MaxGraphAnswer/16 {
		t.Errorf("%d things of one letter are answered", n)
	}
}

// TestGraphEvents: a feed tells in names what a change did, also of what is gone by then, and
// nothing of what was erased.
func TestGraphEvents(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Graph("team", "", entities(events.GraphEntity{Name: "team", Type: "group", Observations: []string{"meets"}}))
	at := w.State.Cursor().Seq
	w.Graph("team", "ada", entities(events.GraphEntity{Name: "Ada", Type: "person"}), relations(events.GraphRelation{From: "Ada", To: "team", Type: "is in"}))
	w.Graph("team", "", events.GraphStep{Kind: events.GraphObservationsAdded, Added: []events.GraphAdded{
		{Entity: events.GraphRef{Seq: at}, Contents: []string{"is small"}}, {Entity: events.GraphRef{Seq: at}}, {Entity: events.GraphRef{Seq: at + 1}, Contents: []string{"said others"}}}})
	w.Graph("team", "", events.GraphStep{Kind: events.GraphObservationsDeleted, Ended: []events.GraphRef{{Seq: at, N: 1}, {Seq: at + 2}}},
		events.GraphStep{Kind: events.GraphEntitiesDeleted, Ended: []events.GraphRef{{Seq: at + 1}}, Severed: []events.GraphRef{{Seq: at + 1, N: 1}}})
	told := func() (out []string) {
		w.OK(w.svc.Events(context.Background(), "team", "", "", false, func(e memory.Event) error {
			if e.Type == "io.mneme.graph.changed.v1" {
				if e.Source != "/namespaces/team/agents/ann" || e.Position == "" || e.Subject != "" {
					t.Errorf("%+v", e)
				}
				out = append(out, string(e.Data))
			}
			return nil
		}))
		return out
	}
	check := func(want ...string) {
		t.Helper()
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("the feed tells\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	first := `{"namespace":"team","agent":"ann","created_entities":[{"name":"team","entityType":"group","observations":["meets"]}]}`
	check(first,
		`{"namespace":"team","agent":"ann","created_entities":[{"name":"Ada","entityType":"person","observations":[]}],"created_relations":[{"from":"Ada","to":"team","relationType":"is in"}]}`,
		`{"namespace":"team","agent":"ann","added_observations":[{"entityName":"team","contents":["is small"]},{"entityName":"Ada","contents":["said others"]}]}`,
		`{"namespace":"team","agent":"ann","deleted_entities":["Ada"],"deleted_relations":[{"from":"Ada","to":"team","relationType":"is in"}],"deleted_observations":[{"entityName":"team","observations":["meets","is small"]}]}`)
	var subjects []string
	applied := w.Applied[len(w.Applied)-1]
	w.OK(w.svc.FeedEvents(applied, nil, func(subject string, _ memory.Event) error { subjects = append(subjects, subject); return nil }))
	if !slices.Equal(subjects, []string{"mem.feed.team.team.graph-changed"}) {
		t.Errorf("it is announced on %q", subjects)
	}
	w.End("team", "ada")
	check(first,
		`{"namespace":"team","agent":"ann","added_observations":[{"entityName":"team","contents":["is small"]}]}`,
		`{"namespace":"team","agent":"ann","deleted_observations":[{"entityName":"team","observations":["meets","is small"]}]}`)
}

// BenchmarkGraphSearch: search_nodes among 10,000 entities with three observations each, and
// with a change before each.
func BenchmarkGraphSearch(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		w := newWorld(b)
		w.Namespace("team", nil)
		fillGraph(w.World, n)
		for name, query := range map[string]string{"one": fmt.Sprintf("number %d of", n/2), "none": "nothing has this"} {
			b.Run(fmt.Sprint(n, "/", name), func(b *testing.B) {
				for range b.N {
					_ = w.graph("team", "", memory.GraphRequest{Query: &query})
				}
			})
		}
		b.Run(fmt.Sprint(n, "/after a change"), func(b *testing.B) {
			query := fmt.Sprintf("number %d of", n/2)
			for i := range b.N {
				b.StopTimer()
				w.Graph("team", "", events.GraphStep{Kind: events.GraphObservationsAdded, Added: []events.GraphAdded{{Entity: events.GraphRef{Seq: 2}, Contents: []string{fmt.Sprint("change ", i)}}}})
				b.StartTimer()
				_ = w.graph("team", "", memory.GraphRequest{Query: &query})
			}
		})
	}
}

// BenchmarkGraphSearchCold: the first search after a start, and one of a graph that is too large
// to be kept.
func BenchmarkGraphSearchCold(b *testing.B) {
	w := newWorld(b)
	w.Namespace("team", nil)
	fillGraph(w.World, 10_000)
	query := "number 5000 of"
	b.Run("first", func(b *testing.B) {
		for range b.N {
			w.restart()
			_ = w.graph("team", "", memory.GraphRequest{Query: &query})
		}
	})
	b.Run("whole", func(b *testing.B) {
		for range b.N {
			_ = w.graph("team", "", memory.GraphRequest{})
		}
	})
}

func fillGraph(w *querytest.World, n int) {
	for at := 0; at < n; at += 100 {
		var all []events.GraphEntity
		var edges []events.GraphRelation
		for i := at; i < at+100; i++ {
			all = append(all, events.GraphEntity{Name: fmt.Sprint("entity ", i), Type: "component", Observations: []string{
				fmt.Sprintf("is number %d of the many that this graph has", i), "was written by hand, and is read by nobody", "Depends on the LAST one"}})
			edges = append(edges, events.GraphRelation{From: fmt.Sprint("entity ", i), To: fmt.Sprint("entity ", i/2), Type: "depends on"})
		}
		w.Graph("team", "", entities(all...), relations(edges...))
	}
}

// BenchmarkGraphParts: parts of a graph of 10,000 entities, looked up and read in passing.
func BenchmarkGraphParts(b *testing.B) {
	w := newWorld(b)
	w.Namespace("team", nil)
	fillGraph(w.World, 10_000)
	for _, n := range []int{1, 10, 100, 1000} {
		g, _ := w.reader("team", "").teamGraph(context.Background())
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("entity ", i*10_000/n))
		}
		refs, err := g.named(names)
		w.OK(err)
		for name, read := range map[string]func(*graphRead, *memory.Graph, []events.GraphRef) error{"looked up": (*graphRead).lookedUp, "in passing": (*graphRead).filtered} {
			b.Run(fmt.Sprint(n, "/", name), func(b *testing.B) {
				for range b.N {
					one := *g
					var out memory.Graph
					w.OK(read(&one, &out, refs))
				}
			})
		}
	}
}
