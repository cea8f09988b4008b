package embed

import (
	"errors"
	"slices"
	"testing"
)

// TestBuiltinTakesAnyText: whatever is not blank has a vector, and queries and
// documents share one.
func TestBuiltinTakesAnyText(t *testing.T) {
	e, _ := open(t, Config{})
	for _, text := range []string{"!!!", "—", "🙂", "a", "the", "\x00", "0", "漢", "\xff\xfe"} {
		d, err := e.Embed(t.Context(), Document, []string{text})
		if err != nil {
			// The model may find nothing in it; then the error says so and names it.
			var typed *Error
			if !errors.As(err, &typed) || typed.Kind != ErrBadInput || typed.Index != 0 {
				t.Errorf("%q: %v", text, err)
			}
			t.Logf("%q: %v", text, err)
			continue
		}
		q, err := e.Embed(t.Context(), Query, []string{text})
		if err != nil || !slices.Equal(d[0], q[0]) {
			t.Errorf("%q: document and query differ, %v", text, err)
		}
	}
}
