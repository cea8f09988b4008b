package views

import (
	"math"
	"testing"
	"time"
)

func TestDayEdges(t *testing.T) {
	for _, c := range []struct{ t, floor, ceil int64 }{{0, 0, 0}, {1, 0, 1}, {-1, -1, 0}, {dayNanos, 1, 1}, {-dayNanos - 1, -2, -1}} {
		if floorDay(c.t) != c.floor || ceilDay(c.t) != c.ceil {
			t.Errorf("%d: %d, %d", c.t, floorDay(c.t), ceilDay(c.t))
		}
	}
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	if nanos(&far, 0) != math.MaxInt64 || nanos(&time.Time{}, 0) != math.MinInt64 || nanos(nil, 7) != 7 {
		t.Error("bounds that nanoseconds cannot hold")
	}
}
