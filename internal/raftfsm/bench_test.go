package raftfsm

import (
	"testing"
)

// sinkMachine takes commands and forgets them, so that the log is what is measured.
type sinkMachine struct{ index, term uint64 }

func (m *sinkMachine) Apply(entries []Entry) ([]any, error) {
	last := entries[len(entries)-1]
	m.index, m.term = last.Index, last.Term
	return make([]any, len(entries)), nil
}
func (m *sinkMachine) AppliedIndex() (uint64, uint64)    { return m.index, m.term }
func (m *sinkMachine) Flush() error                      { return nil }
func (m *sinkMachine) Checkpoint(string) (uint64, error) { return 0, errBoom }
func (m *sinkMachine) Restore(string) error              { return errBoom }

func BenchmarkPropose100KiB(b *testing.B) {
	for name, noSync := range map[string]bool{"sync": false, "nosync": true} {
		b.Run(name, func(b *testing.B) {
			g, err := Open(Options{Dir: b.TempDir(), ID: "n", Machine: &sinkMachine{}, Bootstrap: true, NoSync: noSync, SnapshotBytes: 1 << 40})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			ctx := testCtx(b)
			if err := g.WaitLeader(ctx); err != nil {
				b.Fatal(err)
			}
			data := make([]byte, 100<<10)
			b.SetBytes(int64(len(data)))
			b.ResetTimer()
			window := make(chan *Future, 64)
			done := make(chan error, 1)
			go func() {
				var first error
				for f := range window {
					if err := waitErr(ctx, f); err != nil && first == nil {
						first = err
					}
				}
				done <- first
			}()
			for range b.N {
				window <- g.Propose(ctx, data)
			}
			close(window)
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}
