package projections

import (
	"encoding/hex"
	"fmt"
	"slices"

	"mneme/internal/events"
)

// Spaces: which vector spaces a namespace has. One is current; one may be
// building beside it; those it had before are kept until an event drops them. The
// fold knows spaces by their keys only.

// MarshalText gives the key its 16 hexadecimal digits.
func (k SpaceKey) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText parses what MarshalText gave.
func (k *SpaceKey) UnmarshalText(b []byte) error {
	if len(b) != 2*len(k) {
		return fmt.Errorf("space key: %w", events.ErrMalformed)
	}
	if _, err := hex.Decode(k[:], b); err != nil {
		return fmt.Errorf("space key: %w", events.ErrMalformed)
	}
	return nil
}

// IsZero reports whether the key stands for no space.
func (k SpaceKey) IsZero() bool { return k == SpaceKey{} }

// KeptSpace is a space that its namespace had before.
type KeptSpace struct {
	Space SpaceKey `json:"space"`
	Since int64    `json:"since"` // sealed_at of the switch away from it, ns
}

// knows reports whether vectors of the space have a place in the namespace.
func (h *Home) knows(space SpaceKey) bool {
	return !space.IsZero() && (slices.Contains(h.spaces(), space))
}

func (h *Home) keeps(space SpaceKey) bool {
	return slices.ContainsFunc(h.Kept, func(k KeptSpace) bool { return k.Space == space })
}

func (h *Home) forgetKept(space SpaceKey) {
	h.Kept = slices.DeleteFunc(slices.Clone(h.Kept), func(k KeptSpace) bool { return k.Space == space })
}

// spaces lists the spaces that vectors of the namespace may lie in.
func (h *Home) spaces() []SpaceKey {
	var out []SpaceKey
	for _, s := range []SpaceKey{h.Space, h.Next} {
		if !s.IsZero() {
			out = append(out, s)
		}
	}
	for _, k := range h.Kept {
		out = append(out, k.Space)
	}
	return out
}

// spaceEvent decides an event about a space: change edits the row, or says why
// not.
func (h *home) spaceEvent(ev *event, change func(next *Home, space SpaceKey) Outcome) error {
	now := h.of(ev.Namespace)
	if now == nil || ev.contribution == nil || ev.contribution.Space.IsZero() {
		return ev.is(OutcomeRejected)
	}
	next := now.changedBy(ev.at)
	outcome := change(next, ev.contribution.Space)
	if outcome == OutcomeApplied {
		ev.home = next
	}
	return ev.is(outcome)
}

// spaceBuilding begins to fill a space beside the current one: from here on new
// versions get vectors in both. A kept space is caught up.
func (h *home) spaceBuilding(ev *event) error {
	return h.spaceEvent(ev, func(next *Home, space SpaceKey) Outcome {
		switch {
		case space == next.Space || space == next.Next:
			return OutcomeDuplicate
		case !next.Next.IsZero():
			return OutcomeConflict
		}
		next.Next = space
		next.forgetKept(space)
		return OutcomeApplied
	})
}

// spaceSwitched makes the space that was building the current one.
func (h *home) spaceSwitched(ev *event) error {
	return h.spaceEvent(ev, func(next *Home, space SpaceKey) Outcome {
		if space != next.Next {
			return OutcomeRejected
		}
		if ev.space = next.Space; !ev.space.IsZero() {
			next.Kept = append(slices.Clone(next.Kept), KeptSpace{ev.space, ev.SealedAt})
		}
		next.Space, next.Next = space, SpaceKey{}
		return OutcomeApplied
	})
}

// spaceDropped removes a kept space, or the one being built, with its vectors.
func (h *home) spaceDropped(ev *event) error {
	return h.spaceEvent(ev, func(next *Home, space SpaceKey) Outcome {
		switch {
		case space == next.Next:
			next.Next = SpaceKey{}
		case next.keeps(space):
			next.forgetKept(space)
		default:
			return OutcomeRejected
		}
		ev.space = space
		return OutcomeApplied
	})
}
