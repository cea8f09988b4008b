package embed

import (
	"errors"
	"slices"
	"testing"

	"mneme/internal/text"
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

// TestEveryBuiltinModelOpens: by name and by space, and each stays what it was.
func TestEveryBuiltinModelOpens(t *testing.T) {
	for _, m := range builtinModels() {
		for _, cfg := range []Config{{Model: m.Space.Model}, Config{}.ForSpace(m.Space)} {
			e, _ := open(t, cfg)
			if e.Space() != m.Space {
				t.Errorf("%+v opens %s", cfg, e.Space())
			}
			got, err := e.Embed(t.Context(), Document, []string{"deploys happen on Tuesdays"})
			if want, ok := m.Vector("deploys happen on Tuesdays"); err != nil || !ok || cosineOf(got[0], want) < 0.9999 {
				t.Errorf("%s: other vectors than the model's: %v", m.Space, err)
			}
		}
		if got, ok := Builtin(m.Space); !ok || got.Space != m.Space {
			t.Errorf("%s is not found", m.Space)
		}
		newer := m.Space
		newer.Version++
		if _, ok := Builtin(newer); ok {
			t.Errorf("%s is found", newer)
		}
		q := make([]int8, m.Space.Dimensions)
		if m.Embed(q, text.NewAnalysis(" ")); slices.ContainsFunc(q, func(x int8) bool { return x != 0 }) {
			t.Errorf("%s: a blank text has a vector", m.Space)
		}
	}
}

func cosineOf(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
