package storage

import (
	"testing"
	"testing/synctest"
	"time"
)

// A stall counted when it began, however long it took: on a disk that hangs there is one.
func TestStallThatGoesOnTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stalls
		holds := func(begun uint64, waited time.Duration) {
			t.Helper()
			if b, w := s.sum(); b != begun || w != waited {
				t.Errorf("%d stalls took %s, want %d and %s", b, w, begun, waited)
			}
		}
		holds(0, 0)
		s.begin()
		time.Sleep(time.Second)
		holds(1, time.Second)
		time.Sleep(time.Second)
		s.end()
		time.Sleep(time.Hour)
		holds(1, 2*time.Second)
		s.begin()
		time.Sleep(time.Second)
		holds(2, 3*time.Second)
		s.end()
		s.end()
		holds(2, 3*time.Second)
	})
}
