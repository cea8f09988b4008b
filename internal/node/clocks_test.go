package node

import (
	"sync/atomic"
	"testing"
	"time"
)

// One node's clock goes forward by ten minutes while it leads. It was believed, and when it
// was right again all nodes refused to write until real time had caught up. It hands over,
// what the others write has the right time, and it may lead again when its clock is right.
func TestNodeWhoseClockRunsAheadLeadsNothing(t *testing.T) {
	var ahead [3]atomic.Int64
	began := time.Now()
	tr := trioOf(t, func(i int, cfg *Config) {
		cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead[i].Load())) }
		cfg.Parts.SinceBoot = func() time.Duration { return time.Since(began) }
	})
	tr.openAll()
	tr.writes(0, "a", "before")
	wrong := tr.leader()
	other := (wrong + 1) % 3
	ahead[wrong].Store(int64(10 * time.Minute))
	tr.writes(other, "b", "while one clock is ahead")
	await(t, "another leader", func() bool { at := tr.leader(); return at != wrong })
	tr.writes(wrong, "c", "it takes writes, and forwards them")
	if sealed := time.Unix(0, tr.nodes[other].served[0].state.Cursor().SealedAt); time.Until(sealed) > time.Minute {
		t.Errorf("the log has the time %v", sealed)
	}
	if err := (leading{tr.nodes[wrong]}).eligible(); err == nil {
		t.Error("the node whose clock is wrong may be chosen")
	}
	ahead[wrong].Store(0)
	await(t, "the node may lead again", func() bool { return (leading{tr.nodes[wrong]}).eligible() == nil })
	tr.writes(wrong, "d", "set right")
	tr.same()
}
