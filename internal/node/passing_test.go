package node

import (
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/events"
	"mneme/memory"
)

// While somebody verified the log, its leader was one that led no more and did not know: it
// told less than there is, for some milliseconds. Writes stayed stopped at every node until
// somebody repaired what was whole. A backup was refused, and a repair began.
func TestVerifyStoppedWritesOverWhatPasses(t *testing.T) {
	t.Parallel()
	tr := trioOf(t, nil)
	tr.openAll()
	lead := tr.leader()
	for _, id := range []string{"a", "b", "c", "d"} {
		tr.writes(lead, id, "a memory "+id)
	}
	tr.same()
	n := tr.nodes[lead]
	s := n.served[0]
	subject := "$JS.API.STREAM.INFO." + events.StreamName(0, s.stream.Ref().Epoch)
	msg, err := s.nc.Request(subject, nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	var info map[string]any
	if err := json.Unmarshal(msg.Data, &info); err != nil {
		t.Fatal(err)
	}
	st := info["state"].(map[string]any)
	for _, k := range []string{"last_seq", "messages"} {
		st[k] = st[k].(float64) - 2
	}
	less, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int32
	if _, err := s.nc.Subscribe(subject, func(m *nats.Msg) {
		if left.Add(-1) >= 0 {
			_ = m.Respond(less)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for name, work := range map[string]func() error{
		"verify":  func() error { _, err := n.operator.VerifyLog(t.Context(), nil); return err },
		"rebuild": func() error { return s.explain(t.Context(), nil) },
		"backup":  func() error { _, err := n.operator.BackupLog(t.Context(), io.Discard, ""); return err },
		"repair": func() error {
			_, err := n.operator.RepairLog(t.Context(), nil)
			if memory.CodeOf(err) == memory.CodeConflict {
				return nil // there is nothing to repair
			}
			return err
		},
	} {
		left.Store(3)
		began := time.Now()
		if err := work(); err != nil && memory.CodeOf(err) != memory.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
		left.Store(0)
		t.Log(name, time.Since(began))
		if d := s.replica.Diverged(); d != nil {
			t.Fatalf("%s stopped writes: %v", name, d)
		}
	}
	if at := s.state.Cursor().Epoch; at != 0 {
		t.Errorf("the log was repaired: epoch %d", at)
	}
	tr.writes((lead+1)%3, "e", "after")

	// A repair that has sealed the stream takes over what only the log holds: what it was
	// not told of for a moment was left behind.
	if err := s.replica.WithoutWriter(t.Context(), func() error {
		c := s.state.Cursor()
		e := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: events.TypeLeaderBegan.Schema(), Event: events.NewIDSource(n.cfg.Now, nil).New(), SealedAt: c.SealedAt},
			Payload: events.Began{Term: c.Term, Round: c.Round + 1}.Encode()}
		f := events.Frame{Epoch: c.Epoch, Term: c.Term, Seq: c.Seq + 1, Previous: c.Chain, Events: [][]byte{e.Encode()}}
		if err := errors.Join(s.stream.Append(t.Context(), f.Encode(), c.Seq), s.stream.Seal(t.Context())); err != nil {
			return err
		}
		left.Store(3)
		err := (&repair{shard: s.shard}).adopt(t.Context())
		if at := s.state.Cursor().Seq; at != c.Seq+1 {
			t.Errorf("the state stands at %d, the sealed log at %d", at, c.Seq+1)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
