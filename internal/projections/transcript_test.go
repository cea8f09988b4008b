package projections_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

// TestTranscripts runs testdata/*.txt: blocks of commands, a line of dashes,
// and what came of them. With -rewrite the outcome is written instead.
//
//	namespace NAME [builtin|ollama]        make one; NAME is its alias from now on
//	change NAME | delete NAME
//	building | switched | dropped NAME SPACE   of builtin, ollama, another
//	capture NS AGENT [as=LABEL id= uri= scope=agent tag= talk= day=N by=SUBJECT] TEXT…
//	again LABEL                            the same capture event's content once more
//	revise NS AGENT LABEL base=N [uri= scope= id=] TEXT…
//	forget NS AGENT LABEL [scope=agent]
//	attach NS AGENT LABEL base=N [space=SPACE]
//	graph NS AGENT [id= by=SUBJECT] STEP…  a change of the graph, see graphSteps
//	read NS AGENT [scope=agent] LABEL…     an audited read that gave these records
//	ends NS SUBJECT                        the key of a subject ends
//	began TERM | epoch                     control events
//	frame … end                            the events between share a frame
//	void WHY                               a message that does not continue: text, chain, term, epoch, seq, empty
//	garbage                                a frame whose event is no event
//	unreadable NS AGENT TEXT…              a capture whose payload does not open
//	stale                                  the last range once more
//	destroy NAME                           destroy a namespace's keys
//	restart | rebuild
//	named NAME PATH                        which record a path names, in each partition
//	dump | audit NAME | reads NAME | vectors NS | spaces NS | known NS | hash
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no transcripts")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			in, err := os.ReadFile(file)
			must(t, err)
			got := newTranscript(t).run(string(in))
			if *rewrite {
				must(t, os.WriteFile(file, []byte(got), 0o644))
			} else if got != string(in) {
				t.Errorf("got:\n%s\nrun with -rewrite to accept", got)
			}
		})
	}
}

type transcript struct {
	*world
	dir      string
	s        *projections.State
	d        *derive.Deriver
	last     *projections.Range
	open     []events.Envelope // events of the frame being gathered
	inFrame  bool
	labels   map[string]events.Envelope
	contents map[string]events.Content
	names    map[events.ID]string
	ns       map[string]events.ID
}

func newTranscript(t *testing.T) *transcript {
	x := &transcript{world: newWorld(t, 7), dir: t.TempDir(), labels: map[string]events.Envelope{}, contents: map[string]events.Content{},
		names: map[events.ID]string{}, ns: map[string]events.ID{}}
	x.s = openState(t, x.dir)
	x.d = deriver(t, x.keys, x.s)
	t.Cleanup(func() { _ = x.s.Close() })
	return x
}

// run keeps comments and commands and replaces the outcomes.
func (x *transcript) run(in string) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(in), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		var result []string
		for line := range strings.SplitSeq(commands, "\n") {
			fmt.Fprintln(&out, line)
			if !strings.HasPrefix(line, "#") {
				result = append(result, x.command(strings.Fields(line))...)
			}
		}
		fmt.Fprintf(&out, "----\n")
		for _, r := range result {
			fmt.Fprintln(&out, r)
		}
		fmt.Fprintln(&out)
	}
	view(x.t, x.s, func(v *projections.View) { checkFacts(x.t, v) })
	return out.String()
}

// options splits name=value words from the rest.
func options(words []string) (opt map[string]string, rest []string) {
	opt = map[string]string{}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			opt[k] = v
		} else {
			rest = append(rest, w)
		}
	}
	return opt, rest
}

func (x *transcript) command(words []string) []string {
	opt, args := options(words[1:])
	switch words[0] {
	case "frame":
		x.inFrame, x.open = true, nil
		return nil
	case "end":
		x.inFrame = false
		x.frame(x.open...)
		return x.apply()
	case "void":
		x.void(args[0])
		return x.apply()
	case "garbage":
		f := x.header()
		f.Events = [][]byte{[]byte("\x00garbage")}
		x.message(f.Encode())
		return x.apply()
	case "stale":
		res, err := x.s.ApplyLocal(x.last)
		must(x.t, err)
		return []string{fmt.Sprintf("%s, %d events", res.Answer, len(res.Events))}
	case "destroy":
		must(x.t, x.keys.DestroyNamespace(x.ns[args[0]]))
		return nil
	case "restart":
		must(x.t, x.s.Close())
		x.s = openState(x.t, x.dir)
		x.d = deriver(x.t, x.keys, x.s)
		return nil
	case "rebuild":
		return x.rebuild()
	case "dump", "audit", "reads", "vectors", "spaces", "named", "known", "hash":
		return x.show(words[0], args)
	}
	e := x.event(words[0], args, opt)
	if x.inFrame {
		x.open = append(x.open, e)
		return nil
	}
	x.frame(e)
	return x.apply()
}

// event makes the event of a command.
func (x *transcript) event(verb string, args []string, opt map[string]string) events.Envelope {
	switch verb {
	case "namespace":
		space := spacesByName[strings.Join(args[1:], "")]
		e := x.created(args[0], space)
		x.ns[args[0]], x.names[e.Namespace] = e.Namespace, args[0]
		return e
	case "building":
		return x.spaceEvent(events.TypeSpaceBuilding, x.ns[args[0]], spacesByName[args[1]])
	case "switched":
		return x.spaceEvent(events.TypeSpaceSwitched, x.ns[args[0]], spacesByName[args[1]])
	case "dropped":
		return x.spaceEvent(events.TypeSpaceDropped, x.ns[args[0]], spacesByName[args[1]])
	case "change":
		return x.changed(x.ns[args[0]], map[string]string{settings.MinScore: "0.1"})
	case "delete":
		return x.deleted(x.ns[args[0]])
	case "graph":
		return x.graphChanged(events.Header{Namespace: x.ns[args[0]], Agent: args[1]}, opt["by"], graphSteps(x.t, args[2:]), opt["id"])
	case "read":
		h := events.Header{Namespace: x.ns[args[0]], Agent: args[1], Scope: events.ScopeTeam}
		if opt["scope"] == "agent" {
			h.Scope = events.ScopeAgent
		}
		var given []events.Given
		for _, label := range args[2:] {
			given = append(given, events.Given{Record: x.labels[label].Record, Version: 1})
		}
		return x.reading(h, given...)
	case "ends":
		return x.endOf(x.ns[args[0]], args[1])
	case "began":
		x.term, _ = strconv.ParseUint(args[0], 10, 64)
		return x.began()
	case "epoch":
		x.epoch++
		return x.seal(events.Header{Type: events.TypeEpochBegan}, nil, nil)
	case "again":
		h := x.labels[args[0]].Header
		h.Event, h.Record = events.ID{}, events.ID{}
		if !x.contents[args[0]].OccurredSet {
			h.OccurredAt = 0
		}
		return x.content(h, x.contents[args[0]])
	}
	return x.memory(verb, args, opt)
}

// memory makes the events that are about a record.
func (x *transcript) memory(verb string, args []string, opt map[string]string) events.Envelope {
	if _, ok := x.ns[args[0]]; !ok { // keys without an event: the log knows nothing of it
		x.ns[args[0]] = x.ids.New()
		must(x.t, x.keys.CreateNamespace(x.ns[args[0]]))
	}
	h := events.Header{Namespace: x.ns[args[0]], Agent: args[1], Scope: events.ScopeTeam}
	if opt["scope"] == "agent" {
		h.Scope = events.ScopeAgent
	}
	base, _ := strconv.ParseUint(opt["base"], 10, 32)
	h.BaseVersion = uint32(base)
	c := events.Content{URI: opt["uri"], ClientID: opt["id"], Conversation: opt["talk"], Subject: opt["by"], Text: strings.Join(args[2:], " ")}
	if opt["tag"] != "" {
		c.Tags = []string{opt["tag"]}
	}
	if opt["day"] != "" {
		day, _ := strconv.ParseInt(opt["day"], 10, 64)
		h.OccurredAt, c.OccurredSet = day*24*3600*1e9, true
	}
	switch verb {
	case "capture", "unreadable":
		e := x.content(h, c)
		if verb == "unreadable" {
			e.Payload[20] ^= 1
		}
		label := opt["as"]
		if label == "" {
			label = fmt.Sprintf("r%d", len(x.labels)+1)
		}
		x.labels[label], x.contents[label], x.names[e.Record] = e, c, label
		return e
	case "revise":
		h.Type, h.Target, c.Text = events.TypeRevised, x.labels[args[2]].Record, strings.Join(args[3:], " ")
		return x.content(h, c)
	case "forget":
		h.Target = x.labels[args[2]].Record
		return x.forgotten(h)
	case "attach":
		h.Target = x.labels[args[2]].Record
		space := x.spaces[h.Namespace]
		if opt["space"] != "" {
			space = spacesByName[opt["space"]]
		}
		return x.attached(h, space, x.labels[args[2]].Key, [][]float32{{1, 0, 0, 0}})
	}
	x.t.Fatalf("unknown command %q", verb)
	return events.Envelope{}
}

func (x *transcript) void(why string) {
	f := x.header()
	e := x.began()
	f.Events = [][]byte{e.Encode()}
	switch why {
	case "text":
		x.message([]byte("not a frame"))
		return
	case "empty":
		x.message(nil)
		return
	case "chain":
		f.Previous[3]++
	case "term":
		f.Term--
	case "epoch":
		f.Epoch++
	case "seq":
		f.Seq++
	}
	x.message(f.Encode())
}

// apply folds what is new in the log and says what became of it.
func (x *transcript) apply() (out []string) {
	c := x.s.Cursor()
	x.last, _ = rangeOf(x.t, x.d, c, x.log[c.Seq:])
	res, err := x.s.ApplyLocal(x.last)
	must(x.t, err)
	for _, r := range res.Events {
		line := r.Position.String() + " " + r.Outcome.String()
		if r.Record != (events.ID{}) {
			line += " " + x.name(r.Record)
		}
		if r.Version != 0 {
			line += fmt.Sprintf(" v%d", r.Version)
		}
		out = append(out, line)
	}
	if len(res.Events) == 0 {
		out = append(out, fmt.Sprintf("nothing; the state stands at %s", res.Cursor.Position()))
	}
	return out
}

func (x *transcript) name(id events.ID) string {
	if n, ok := x.names[id]; ok {
		return n
	}
	return id.String()
}

func (x *transcript) rebuild() []string {
	beside, err := x.s.Sibling()
	must(x.t, err)
	fold(x.t, x.keys, beside, x.log, 2)
	before := x.show("hash", nil)
	must(x.t, x.s.Swap(beside))
	x.d = deriver(x.t, x.keys, x.s)
	if after := x.show("hash", nil); !slices.Equal(before, after) {
		return []string{"another state:", before[0], after[0]}
	}
	return []string{"the same state"}
}

func (x *transcript) show(what string, args []string) (out []string) {
	say := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	view(x.t, x.s, func(v *projections.View) {
		switch what {
		case "hash":
			say("%s", v.Hash())
		case "named":
			parts, err := v.Partitions(x.ns[args[0]])
			must(x.t, err)
			for _, p := range parts {
				id, ok, err := v.URI(p.ID, args[1])
				must(x.t, err)
				if ok {
					say("partition %d: %s", p.ID, x.name(id))
				}
			}
		case "audit":
			must(x.t, v.Audit(x.ns[args[0]], projections.Ref{}, func(r projections.AuditRow) (bool, error) {
				say("%d.%d %s %s %s%s", r.At.Seq, r.At.Index, r.Type, r.Outcome, r.Agent, x.about(r.Record))
				return true, nil
			}))
		case "reads":
			must(x.t, v.ReadsBefore(x.ns[args[0]], projections.Ref{}, func(r projections.LoggedRead) (bool, error) {
				say("%d.%d %s of %s", r.At.Seq, r.At.Index, r.Agent, r.Scope.Public())
				return true, nil
			}))
		case "vectors":
			x.showVectors(v, x.ns[args[0]], say)
		case "known":
			x.showGraph(v, x.ns[args[0]], say)
		case "spaces":
			x.showSpaces(v, x.ns[args[0]], say)
		case "dump":
			x.showAll(v, say)
		}
	})
	return out
}

func (x *transcript) about(id events.ID) string {
	if id == (events.ID{}) {
		return ""
	}
	return " on " + x.name(id)
}

func (x *transcript) showVectors(v *projections.View, ns events.ID, say func(string, ...any)) {
	s := settings.Effective{Space: x.spaces[ns]}
	parts, err := v.Partitions(ns)
	must(x.t, err)
	for _, p := range parts {
		must(x.t, v.Vectors(p.ID, s.SpaceKey(), 0, func(id uint32, r projections.VectorRow) error {
			say("partition %d vector %d: doc %d chunk %d", p.ID, id, r.Doc, r.Chunk)
			return nil
		}))
	}
	info, _ := v.NamespaceByID(ns)
	pending, err := v.Pending(ns, info.Space, 100)
	must(x.t, err)
	for _, p := range pending {
		say("pending: partition %d doc %d %s", p.Partition, p.Doc, x.name(p.Record))
	}
}

// showSpaces says what a namespace has in each of its spaces.
func (x *transcript) showSpaces(v *projections.View, ns events.ID, say func(string, ...any)) {
	info, ok := v.NamespaceByID(ns)
	if !ok || info.Deleted {
		say("no namespace")
		return
	}
	names := map[projections.SpaceKey]string{}
	for name, s := range spacesByName {
		names[settings.KeyOf(s)] = name
	}
	one := func(role string, key projections.SpaceKey) {
		if key.IsZero() {
			return
		}
		n, err := v.SpaceRecords(ns, key)
		must(x.t, err)
		say("%s %s: %d of %d records%s", role, names[key], n, v.NamespaceTotals(ns).Records, x.holding(v, ns, key))
	}
	one("current", info.Space)
	one("next", info.Next)
	for _, k := range info.Kept {
		one("kept", k.Space)
	}
	say("%d pending", v.NamespaceTotals(ns).Pending)
}

// holding lists the vectors in a space and the versions that lack them.
func (x *transcript) holding(v *projections.View, ns events.ID, key projections.SpaceKey) (out string) {
	parts, err := v.Partitions(ns)
	must(x.t, err)
	for _, p := range parts {
		must(x.t, v.Vectors(p.ID, key, 0, func(id uint32, r projections.VectorRow) error {
			out += fmt.Sprintf(", %d.%d is doc %d", p.ID, id, r.Doc)
			return nil
		}))
		docs, _, _, err := v.Lacking(p, key, 0, 100)
		must(x.t, err)
		for _, d := range docs {
			out += ", lacks " + x.name(d.Record)
		}
	}
	return out
}

func (x *transcript) showAll(v *projections.View, say func(string, ...any)) {
	c := v.Cursor()
	say("cursor %s term %d, %d events, %d partitions", c.Position(), c.Term, c.Events, c.Partitions)
	for _, n := range v.Namespaces() {
		totals := v.NamespaceTotals(n.ID)
		say("namespace %s: %d records, %d pending, settings %v", n.Name, totals.Records, totals.Pending, n.Settings)
		parts, err := v.Partitions(n.ID)
		must(x.t, err)
		for _, p := range parts {
			say("  partition %d %s%s, next doc %d, %d living", p.ID, p.Scope.Public(), p.Agent, p.NextDoc, v.LiveCount(p))
			must(x.t, v.Docs(p.ID, p.NextDoc, func(doc uint32, d projections.Doc) (bool, error) {
				life := "lives"
				if !d.Living() {
					life = fmt.Sprintf("died at %d.%d", d.Death.Seq, d.Death.Index)
				}
				say("    doc %d %s v%d by %s at %d.%d %s", doc, x.name(d.Record), d.Version, d.Agent, d.At.Seq, d.At.Index, life)
				return true, nil
			}))
		}
	}
	must(x.t, v.Quarantined(func(at projections.Ref, code string) error {
		say("quarantined %d.%d: %s", at.Seq, at.Index, code)
		return nil
	}))
	for _, began := range v.Epochs() {
		say("epoch %d starts at %d", began.Epoch, began.Seq)
	}
}
