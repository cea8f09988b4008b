package node

import (
	"cmp"
	"slices"
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/events"
)

// TestRepairTakesWhatIsWrittenWhileItBegins: a message that somebody wrote to the old
// stream behind the first adoption was left behind.
func TestRepairTakesWhatIsWrittenWhileItBegins(t *testing.T) {
	dir, _ := rotten(t, 7)
	n := open(t, quiet(dir))
	adopted := 0
	var late, sealed error
	n.beforeStep(func(name string) {
		old := n.served[0].stream
		info, err := old.Info(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		switch name {
		case "seal": // behind the first adoption: a writer on another node
			c := n.served[0].state.Cursor()
			ids := events.NewIDSource(n.cfg.Now, nil)
			e := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: events.TypeLeaderBegan.Schema(), Event: ids.New(), SealedAt: c.SealedAt},
				Payload: events.Began{Term: c.Term, Round: c.Round + 1}.Encode()}
			f := events.Frame{Epoch: c.Epoch, Term: c.Term, Seq: c.Seq + 1, Previous: c.Chain, Events: [][]byte{e.Encode()}}
			late = old.Append(t.Context(), f.Encode(), info.Last)
		case "adopt":
			if adopted++; adopted == 2 { // the seal holds
				sealed = old.Append(t.Context(), []byte("too late"), info.Last)
			}
		}
	})
	last := n.served[0].state.Cursor().Seq
	if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if late != nil {
		t.Fatal(late)
	}
	if sealed == nil {
		t.Error("the old stream takes messages after the seal")
	}
	m, err := n.served[0].stream.Get(t.Context(), last+1)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := events.DecodeFrame(m.Data); err != nil || f.Epoch != 0 {
		t.Errorf("message %d is of epoch %d, %v: what the old stream took is not in the new one", last+1, f.Epoch, err)
	}
	sound(t, n)
}

// TestForeignStreamUnderTheReservedNameIsGivenUp: a stream that somebody made under
// the name of the reserved one was filled, and became the log; one of another cluster
// ended each repair.
func TestForeignStreamUnderTheReservedNameIsGivenUp(t *testing.T) {
	for name, cluster := range map[string]string{"the node's own cluster": "", "another cluster": "another"} {
		t.Run(name, func(t *testing.T) {
			dir, _ := rotten(t, 7)
			n := open(t, quiet(dir))
			theirs := events.StreamRef{Epoch: 1, Identity: "somebody else's"}
			n.beforeStep(func(name string) {
				if next := n.served[0].state.Cursor().Next; name == "fill" && next.Epoch == 1 {
					cfg := eventlog.StreamConfig{Ref: theirs, ClusterID: cmp.Or(cluster, n.served[0].dir.node.ClusterID)}
					if _, err := eventlog.OpenStream(t.Context(), n.nc, cfg); err != nil {
						t.Error(err)
					}
				}
			})
			if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if c := n.served[0].state.Cursor(); c.Epoch != 2 || n.served[0].stream.Ref() != c.Stream() {
				t.Errorf("the log is %v, the state is fed from %v", n.served[0].stream.Ref(), c.Stream())
			}
			left := []events.StreamRef{n.served[0].stream.Ref()}
			if cluster != "" {
				left = append([]events.StreamRef{theirs}, left...)
			}
			await(t, "what was replaced to be removed, and no more", func() bool {
				present, err := n.served[0].stream.Present(t.Context())
				return err == nil && slices.Equal(present, left)
			})
			must(t, n, "life goes on")
		})
	}
}

// A repair that was killed goes on where the state knows nothing of it, as an older copy does: the log that it sealed says so.
func TestASealedLogIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	n := open(t, quiet(dir))
	must(t, n, "a memory of the harbour")
	if err := n.served[0].stream.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	shut(t, n)
	n = open(t, quiet(dir))
	await(t, "the repair to go on", func() bool { return n.served[0].state.Cursor().Epoch == 1 && n.served[0].replica.Leads() })
	must(t, n, "life goes on")
	sound(t, n)
}
