package load

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParallel(t *testing.T) {
	var mu sync.Mutex
	seen := map[int]int{}
	if err := Parallel(context.Background(), 7, 100, func(_ context.Context, i int) error {
		mu.Lock()
		defer mu.Unlock()
		seen[i]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if seen[i] != 1 {
			t.Errorf("%d was done %d times", i, seen[i])
		}
	}
	bad := errors.New("bad")
	var calls atomic.Int64
	err := Parallel(context.Background(), 1, 100, func(_ context.Context, i int) error {
		calls.Add(1)
		if i == 3 {
			return bad
		}
		return nil
	})
	if !errors.Is(err, bad) || calls.Load() != 4 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Parallel(over, 2, 10, func(context.Context, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPaced(t *testing.T) {
	var n atomic.Int64
	began := time.Now()
	if err := Paced(context.Background(), 1000, 50*time.Millisecond, 1000, func(_ int, due time.Time) error {
		if time.Now().Before(due) {
			t.Error("a call came before it was due")
		}
		n.Add(1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n.Load() != 50 || time.Since(began) < 49*time.Millisecond {
		t.Errorf("%d calls in %v, want 50 over 49 ms", n.Load(), time.Since(began))
	}
	bad := errors.New("bad")
	if err := Paced(context.Background(), 1000, time.Minute, 10, func(i int, _ time.Time) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	slow := func(int, time.Time) error { <-ctx.Done(); return nil }
	time.AfterFunc(100*time.Millisecond, cancel)
	if err := Paced(context.Background(), 1000, time.Minute, 3, slow); err == nil || !strings.Contains(err.Error(), "keep up") {
		t.Errorf("too slow: %v", err)
	}
	if err := Paced(ctx, 1, time.Minute, 3, slow); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestCheckAck(t *testing.T) {
	if err := CheckAck([]byte(`{"stream":"mem","seq":4,"record_id":"r","status":"created"}`)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "{}", `{"error":{"code":400}}`, `{"record_id":"r","status":"duplicate"}`, `{"status":"created"}`} {
		if err := CheckAck([]byte(bad)); !errors.Is(err, ErrNotAcked) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
