package hooks

import (
	"context"
	"errors"
	"fmt"
)

// unspooled is a capture that no disk has. forget takes out of the state what was noted of it: said
// again, it may find room.
type unspooled struct {
	Entry
	forget func(*state)
}

// errOwnTime is why a capture was not taken where nothing is known of the node.
var errOwnTime = errors.New("the hook's own time ended before the node had answered")

// direct has the node take what could not be spooled, for the reason why, before the host is answered:
// nothing else holds it. noted says that the state knows of it.
func (r *Runner) direct(ctx context.Context, left []unspooled, why error, noted bool) {
	lost, reason := r.hand(ctx, left)
	if took := len(left) - len(lost); took > 0 {
		r.Note("%s could not be spooled and went to the node at %s directly: %v%s", captures(took), r.Addr, why, hintOf(why))
	}
	if len(lost) == 0 {
		return
	}
	r.Note("not kept: %s, neither spooled (%v) nor taken by the node: %v%s", captures(len(lost)), why, reason, hintOf(reason))
	if !noted {
		return
	}
	_ = r.Disk.change(context.WithoutCancel(ctx), r.Now(), func(s *state) error {
		for _, u := range lost {
			u.forget(s)
		}
		if errors.Is(why, errFull) {
			s.Counts.Refused += len(lost)
		}
		return nil
	})
}

// hand sends captures of which the disk knows nothing, and returns those that were not taken, and why
// the last of them was not.
func (r *Runner) hand(ctx context.Context, left []unspooled) (lost []unspooled, reason error) {
	ctx, cancel := context.WithTimeout(ctx, sendPatience)
	defer cancel()
	for i, u := range left {
		one, done := context.WithTimeoutCause(ctx, patience, r.silent(patience))
		u.unspooled, r.why = true, errOwnTime
		became := r.send(one, u.Entry, func(Entry) error { return nil })
		done()
		switch became {
		case taken, refused: // which is said
		case later:
			lost, reason = append(lost, u), r.why
		case blocked, away, unfinished:
			return append(lost, left[i:]...), r.why
		}
	}
	return lost, reason
}

func captures(n int) string {
	if n == 1 {
		return "1 capture"
	}
	return fmt.Sprintf("%d captures", n)
}
