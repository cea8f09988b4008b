package eventlog

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// connectedTo is a connection to the server of a name and an id.
type connectedTo struct{ name, id string }

func (c connectedTo) ConnectedServerName() string { return c.name }
func (c connectedTo) ConnectedServerId() string   { return c.id }

// says is what a server answers that is asked whether it syncs: a name, and an id that
// is the same as long as it runs.
func says(name, id string, always bool) varz {
	v := varz{ID: id, Name: name}
	v.JetStream.Config = &struct {
		SyncAlways bool `json:"sync_always"`
	}{always}
	return v
}

// TestProofCoversEveryCopy walks through what servers with a copy of the log may say and
// not say. Without the rules for silent servers a loss of one would end all writes, or
// one that came back without syncing would go unnoticed.
func TestProofCoversEveryCopy(t *testing.T) {
	a, b, c := says("a", "1", true), says("b", "2", true), says("c", "3", true)
	three := []Copy{{Server: "a"}, {Server: "b"}, {Server: "c"}}
	gone := func(names string) (out []Copy) {
		for _, c := range three {
			c.Gone = strings.Contains(names, c.Server)
			out = append(out, c)
		}
		return out
	}
	type round struct {
		after      time.Duration // since the round before
		found      []varz
		reconnects uint64
	}
	for _, test := range []struct {
		name   string
		rounds []round
		wait   time.Duration // between the last round and the question
		now    uint64        // reconnects when it is asked
		copies []Copy
		want   string // "" = it counts
	}{
		{"all say so", []round{{0, []varz{a, b, c}, 0}}, 0, 0, three, ""},
		{"nobody was asked", nil, 0, 0, three, "new one"},
		{"the connection is a new one", []round{{0, []varz{a, b, c}, 0}}, 0, 1, three, "new one"},
		{"one of them was never heard of", []round{{0, []varz{a, b}, 0}}, 0, 0, three, "c keeps a copy"},
		{"and is gone", []round{{0, []varz{a, b}, 0}}, 0, 0, gone("c"), ""},
		{"two are gone", []round{{0, []varz{a}, 0}}, 0, 0, gone("bc"), "1 of 3"},
		{"one falls silent for a moment", []round{{0, []varz{a, b, c}, 0}, {time.Second, []varz{a, b}, 0}}, 0, 0, three, ""},
		{"and stays silent while it lives", []round{{0, []varz{a, b, c}, 0}, {silentFor, []varz{a, b}, 0}}, 0, 0, three, "c keeps a copy"},
		{"and stays silent because it is gone", []round{{0, []varz{a, b, c}, 0}, {silentFor, []varz{a, b}, 0}}, 0, 0, gone("c"), ""},
		{"one comes back without syncing", []round{{0, []varz{a, b, c}, 0}, {time.Second, []varz{a, b, says("c", "4", false)}, 0}}, 0, 0, three, "not \"always\" on c"},
		{"and falls silent", []round{{0, []varz{a, b, c}, 0}, {1, []varz{a, b, says("c", "4", false)}, 0}, {1, []varz{a, b}, 0}}, 0, 0, three, "not \"always\" on c"},
		{"and syncs again", []round{{0, []varz{a, b, says("c", "4", false)}, 0}, {1, []varz{a, b, c}, 0}}, 0, 0, three, ""},
		{"a server without a copy does not sync", []round{{0, []varz{a, b, c, says("d", "5", false)}, 0}}, 0, 0, three, "not \"always\" on d"},
		{"the one server there is falls silent, and the connection lives", []round{{0, []varz{a}, 0}, {time.Hour, nil, 0}}, time.Hour, 0, three[:1], ""},
		{"it was restarted and is silent", []round{{0, []varz{a, b}, 0}, {1, []varz{b}, 1}}, 0, 1, three[:1], "a keeps a copy"},
		{"another server answers under its name", []round{{0, []varz{says("a", "9", true), b, c}, 0}}, 0, 0, three, "new one"},
		{"it is not known who has copies", []round{{0, []varz{a, b, c}, 0}}, 0, 0, nil, "not known which"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newProof(nil)
			p.conn = connectedTo{"a", "1"}
			now := time.Now()
			for _, r := range test.rounds {
				now = now.Add(r.after)
				_ = p.heard(r.found, now, r.reconnects) // what follows is asked for below
			}
			err := p.holds(test.now)
			if err == nil {
				err = p.covers(test.copies, now.Add(test.wait), test.now)
			}
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !errors.Is(err, ErrNoSyncProof)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A server that was killed while it led, or before the leader there is, counted as alive
// for minutes: its successor has never heard of it.
func TestCopyOfWhichTheLeaderNeverHeardIsGone(t *testing.T) {
	got := copiesOf(&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{
		{Name: "b", Active: time.Second, Current: true}, {Name: "c"}, {Name: "d", Active: time.Minute}, {Name: "e", Active: time.Second, Offline: true}, {Name: "f", Active: time.Second}}})
	want := []Copy{{Server: "a"}, {Server: "b"}, {"c", true, true}, {"d", true, true}, {"e", true, true}, {Server: "f", Behind: true}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := copiesOf(&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{{Name: "b"}}}); got != nil {
		t.Errorf("nobody leads, and these have copies: %v", got)
	}
}
