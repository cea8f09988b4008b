package projections_test

import "testing"

// A snapshot that Raft installs takes the state's place at any moment, also while it is
// purged: the tables were closed under the purge, and Pebble panicked.
func TestPurgeBesideARestore(t *testing.T) {
	h := newHistory(t, 1, 300)
	s := openState(t, t.TempDir())
	defer s.Close()
	fold(t, h.keys, s, h.log, 20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if err := s.Purge(t.Context()); err != nil {
				t.Errorf("purge: %v", err)
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		if _, err := s.Renew(); err != nil { // it swaps as a restore does
			t.Error(err)
			<-done
			return
		}
	}
}
