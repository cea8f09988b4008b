package replica

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"mneme/internal/ingest"
)

// A node whose terms could not begin for a while, because the log was away, waited up to half
// a minute before it tried again, also where it had lost the lead and had it anew.
func TestNextTermDoesNotWaitForThePauseOfTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tried := newStage(nil), make(chan uint64)
		l := newLeader(s, newRoom(), nil, slog.New(slog.DiscardHandler), func(_ context.Context, term uint64) (*ingest.Writer, error) {
			tried <- term
			return nil, errors.New("the log is away")
		})
		go l.run()
		s.begin()
		began, longest := time.Now(), time.Duration(0)
		for range 20 {
			before := time.Now()
			<-tried
			longest = max(longest, time.Since(before))
		}
		if longest > pauseMax || time.Since(began) < pauseMax {
			t.Errorf("twenty attempts took %s, the longest pause was %s", time.Since(began), longest)
		}
		synctest.Wait() // it pauses
		s.lose()
		s.begin()
		before := time.Now()
		if term := <-tried; term != 2 || time.Since(before) != 0 {
			t.Errorf("term %d was tried after %s", term, time.Since(before))
		}
		synctest.Wait()
		l.close(t.Context())
	})
}
