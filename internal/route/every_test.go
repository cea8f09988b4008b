package route_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/internal/api/natsapi"
	"mneme/internal/api/rest"
	"mneme/internal/route"
	"mneme/memory"
)

// What the transports call is what is forwarded: a method that is new there does not
// build here.
var (
	_ rest.Writer    = (*route.Router)(nil)
	_ natsapi.Writer = (*route.Router)(nil)
	_ route.Writer   = (*route.Router)(nil)
)

// ofTheNode are the administrative actions that concern the node which is asked.
var ofTheNode = []string{"Status", "Cluster", "RemoveNode", "TransferLead", "DrainNode", "Doctor", "Rebuild", "VerifyLog", "RepairLog", "Rejected", "Quarantine", "PutInQuarantine", "BackupLog", "BackupKeys", "DestroyedKeys",
	"Reload", "Aside", "RemoveAside", "DebugBundle", "Profile", "Upgrade", "FinishUpgrade", "Version"}

// TestEveryAdministrativeActionIsForwardedOrOfTheNode makes whoever adds one decide.
func TestEveryAdministrativeActionIsForwardedOrOfTheNode(t *testing.T) {
	for m := range reflect.TypeFor[rest.Admin]().Methods() {
		forwarded, own := has(reflect.TypeFor[route.Writer](), m.Name), slices.Contains(ofTheNode, m.Name)
		if forwarded == own {
			t.Errorf("rest.Admin.%s: forwarded %v, of the node %v\n\teither only the leader can do it: add it to route.Writer; or it concerns the node that is asked: add it to ofTheNode", m.Name, forwarded, own)
		}
	}
	for _, transport := range []reflect.Type{reflect.TypeFor[rest.Writer](), reflect.TypeFor[natsapi.Writer]()} {
		for m := range transport.Methods() {
			if !has(reflect.TypeFor[route.Writer](), m.Name) {
				t.Errorf("%s.%s is no method of route.Writer", transport, m.Name)
			}
		}
	}
}

func has(iface reflect.Type, name string) bool {
	_, ok := iface.MethodByName(name)
	return ok
}

// situation is what becomes of one call.
type situation struct {
	name  string
	stage func(w *world, a, b, c *member)
	// where it is carried out, for each kind of call; "" = nowhere.
	any, again, sure string
	fails            memory.Code // of those that have no other wanted place
}

// situations tell for each method where a call that comes to node a is carried out.
// again are those that may be carried out twice, sure those whose refusals say that
// nothing happened, and any the rest.
var situations = []situation{
	{name: "another node leads", stage: func(w *world, _, b, _ *member) { w.lead(b) }, any: "b", again: "b", sure: "b"},
	{name: "this node leads", stage: func(w *world, a, _, _ *member) { w.lead(a) }, any: "a", again: "a", sure: "a"},
	{name: "its writer is open, though it is not known to lead", stage: func(w *world, a, _, _ *member) {
		w.lead(a)
		a.leader = nil
	}, any: "a", again: "a", sure: "a"},
	{name: "it leads, and its writer opens", stage: func(w *world, a, _, _ *member) {
		w.lead(a)
		a.open = false
		a.waits = func() { w.lead(a) }
	}, any: "a", again: "a", sure: "a"},
	{name: "the leader's writer opens", stage: func(w *world, _, b, _ *member) {
		w.lead(b)
		b.open = false
		b.waits = func() { w.lead(b) }
	}, any: "b", again: "b", sure: "b"},
	{name: "the one asked does not lead", stage: func(w *world, a, b, c *member) {
		w.lead(c)
		a.leader = b
		a.waits = func() { w.lead(c) }
	}, any: "c", again: "c", sure: "c"},
	{name: "nobody leads for a while", stage: func(w *world, a, _, c *member) { a.waits = func() { w.lead(c) } }, any: "c", again: "c", sure: "c"},
	{name: "the leader is gone", stage: func(w *world, a, b, c *member) {
		w.lead(b)
		_ = b.port.Close()
		a.waits = func() { w.lead(c) }
	}, any: "c", again: "c", sure: "c"},
	{name: "the leader dies before it carries it out", stage: func(w *world, _, b, c *member) {
		w.lead(b)
		b.before = b.die(c)
	}, again: "c", fails: memory.CodeOutcomeUnknown},
	{name: "the leader dies after it has carried it out", stage: func(w *world, _, b, c *member) {
		w.lead(b)
		b.after = b.die(c)
	}, any: "b", again: "b", sure: "b", fails: memory.CodeOutcomeUnknown},
	{name: "the leader is deposed and refuses", stage: func(w *world, _, b, c *member) {
		w.lead(b)
		b.before = b.depose(c, memory.CodeUnavailable)
	}, again: "c", sure: "c", fails: memory.CodeUnavailable},
	{name: "this node is deposed and refuses", stage: func(w *world, a, _, c *member) {
		w.lead(a)
		a.before = a.depose(c, memory.CodeUnavailable)
	}, again: "c", sure: "c", fails: memory.CodeUnavailable},
	{name: "the leader is deposed and cannot confirm what its state says", stage: func(w *world, _, b, c *member) {
		w.lead(b)
		b.before = b.doubt(c)
	}, any: "c", again: "c", sure: "c"},
	{name: "the leader confirms what its state says only later", stage: func(w *world, _, b, _ *member) {
		w.lead(b)
		b.before = b.doubt(nil)
	}, any: "b", again: "b", sure: "b"},
	{name: "this node is deposed and cannot confirm what its state says", stage: func(w *world, a, _, c *member) {
		w.lead(a)
		a.before = a.doubt(c)
	}, any: "c", again: "c", sure: "c"},
	{name: "the leader is deposed and does not know what it wrote", stage: func(w *world, _, b, c *member) {
		w.lead(b)
		b.after = b.depose(c, memory.CodeOutcomeUnknown)
	}, any: "b", again: "b", sure: "b", fails: memory.CodeOutcomeUnknown},
	{name: "the leader is deposed and does not know that it wrote nothing", stage: func(w *world, _, b, c *member) {
		w.lead(b)
		b.before = b.depose(c, memory.CodeOutcomeUnknown)
	}, again: "c", fails: memory.CodeOutcomeUnknown},
	{name: "this node is deposed and does not know what it wrote", stage: func(w *world, a, _, c *member) {
		w.lead(a)
		a.after = a.depose(c, memory.CodeOutcomeUnknown)
	}, any: "a", again: "a", sure: "a", fails: memory.CodeOutcomeUnknown},
}

// TestEveryWriteIsCarriedOutOnceByTheNodeThatLeads calls every method in every situation,
// and at the same time, with the same ids, on a second shard that another node leads:
// what becomes of one shard is nothing to the other.
func TestEveryWriteIsCarriedOutOnceByTheNodeThatLeads(t *testing.T) {
	type variant struct {
		method string
		ids    bool
	}
	var all []variant
	for m := range reflect.TypeFor[route.Writer]().Methods() {
		all = append(all, variant{m.Name, false})
		if m.Name == "Capture" || m.Name == "Revise" || m.Name == "ChangeGraph" {
			all = append(all, variant{m.Name, true})
		}
	}
	for _, s := range situations {
		for _, v := range all {
			name := v.method
			if v.ids {
				name += " with an id"
			}
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				w, a, b, c := open(t, 20*time.Second)
				second := w.beside(t, 1, 20*time.Second)
				s.stage(w, a, b, c)
				other := second.nodes[2]
				if slices.Contains([]string{s.any, s.again, s.sure}, other.name) {
					other = second.nodes[0]
				}
				second.lead(other)
				args := arguments(v.method, v.ids)
				var both sync.WaitGroup
				both.Go(func() {
					if err := call(t, second.nodes[0], v.method, args); err != nil {
						t.Errorf("on the second shard: %v", err)
					}
				})
				err := call(t, a, v.method, args)
				both.Wait()
				if log := second.entries(); len(log) != 1 || log[0].node != other.name || !reflect.DeepEqual(log[0].args, flat(args)) {
					t.Errorf("on the second shard was carried out: %+v, want once at %q", log, other.name)
				}

				where, fails := s.any, s.fails
				switch {
				case v.ids:
					where, fails = s.again, ""
				case v.method == "Capture" || v.method == "Revise" || v.method == "Forget" || v.method == "ChangeGraph" || v.method == "NoteRead":
					if where = s.sure; s.fails == memory.CodeUnavailable {
						fails = ""
					}
				}
				if got := memory.CodeOf(err); got != fails {
					t.Errorf("got %v (%s), want code %q", err, got, fails)
				}
				log := w.entries()
				if where == "" && len(log) > 0 || where != "" && (len(log) != 1 || log[0].node != where || log[0].method != v.method) {
					t.Errorf("carried out: %+v, want once at %q", log, where)
				}
				if len(log) == 1 && !reflect.DeepEqual(log[0].args, flat(args)) {
					t.Errorf("it was asked for\n%#v, the leader saw\n%#v", flat(args), log[0].args)
				}
			})
		}
	}
}

// arguments are those of a method but for its context, with every field set.
func arguments(method string, ids bool) []any {
	m, _ := reflect.TypeFor[route.Writer]().MethodByName(method)
	var args []any
	for i := 1; i < m.Type.NumIn(); i++ {
		v := reflect.New(m.Type.In(i))
		fill(v.Elem(), fmt.Sprintf("%s-%d", method, i))
		args = append(args, v.Elem().Interface())
	}
	switch {
	case method == "Capture":
		items, opt := args[1].([]memory.Capture)[:1], args[2].(api.CaptureOptions)
		opt.Source = opt.Source[:1]
		if !ids {
			items[0].ID = ""
		}
		args[1], args[2] = items, opt
	case method == "Revise" && !ids:
		args[5] = ""
	case method == "ChangeGraph" && !ids:
		change := args[1].(memory.GraphChange)
		change.ID = ""
		args[1] = change
	}
	return args
}

// flat are the arguments as the log has them: one item of a capture by itself.
func flat(args []any) []any {
	if len(args) == 4 {
		if items, ok := args[1].([]memory.Capture); ok {
			opt := args[2].(api.CaptureOptions)
			return []any{args[0], items[0], opt.Origin, opt.Source[0], args[3]}
		}
	}
	if len(args) == 0 {
		return nil
	}
	return args
}

// call calls a method and checks that a good answer has everything that was answered. The
// error of a single item counts as that of the call.
func call(t *testing.T, m *member, method string, args []any) error {
	t.Helper()
	in := []reflect.Value{reflect.ValueOf(t.Context())}
	for _, a := range args {
		in = append(in, reflect.ValueOf(a))
	}
	out := reflect.ValueOf(m.Router).MethodByName(method).Call(in)
	err, _ := out[len(out)-1].Interface().(error)
	if err != nil {
		return err
	}
	if resp, ok := out[0].Interface().(memory.CaptureResponse); ok {
		if len(resp.Results) != 1 || resp.Vectors != "pending" || resp.Results[0].Error == nil && (resp.Position != "p0.0.1.0" || resp.Results[0].Position != resp.Position || resp.Results[0].RecordID != "record-1") {
			t.Errorf("answered %+v", resp)
		}
		if e := resp.Results[0].Error; e != nil {
			return memory.Errorf(e.Code, "%s", e.Detail)
		}
		return nil
	}
	for _, o := range out[:len(out)-1] {
		want := reflect.New(o.Type()).Elem()
		fill(want, "")
		if got := o.Interface(); !reflect.DeepEqual(got, want.Interface()) {
			t.Errorf("answered %+v, want %+v", got, want)
		}
	}
	return nil
}

// filled sets every field of what p points to.
func filled[T any](p *T) { fill(reflect.ValueOf(p).Elem(), "") }

// fill gives a value and everything in it values that are easy to lose: nothing is zero.
func fill(v reflect.Value, path string) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 11, 22, 20, 32, 24, 123456789, time.UTC)))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage("{ \"n\" : 12345678901234567890123, \"big\":1e400, \"<&>\":[0.1,{\"a\":null,\"a\":1.0}],\n\"\u2028\":\"\\u00e9\" }")))
		return
	case memory.Wait:
		v.SetString(string(memory.WaitSearchable))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("«" + path + "» <é&\">\u2028")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MaxInt64 - 1)
	case reflect.Uint64:
		v.SetUint(math.MaxUint64)
	case reflect.Uint8:
		v.SetUint(math.MaxUint8)
	case reflect.Uint32:
		v.SetUint(math.MaxUint32)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), path)
		}
	case reflect.Float64:
		v.SetFloat(0.1 + 0.2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), fmt.Sprintf("%s.%d", path, i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"one", "two"} {
			elem := reflect.New(v.Type().Elem()).Elem()
			fill(elem, path+"."+key)
			v.SetMapIndex(reflect.ValueOf(key), elem)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	default:
		panic("a field of kind " + v.Kind().String() + " at " + path + ": say here how it is filled")
	}
}
