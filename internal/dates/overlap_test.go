package dates

import (
	"math"
	"strings"
	"testing"
	"time"
)

func day(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 12, 0, 0, 0, time.UTC) }

// one parses a text with one expression.
func one(t *testing.T, s string) Expr {
	t.Helper()
	out := Parse(s, reference())
	if len(out) != 1 {
		t.Fatalf("%q: %v, want one expression", s, out)
	}
	return out[0]
}

func TestOverlap(t *testing.T) {
	tests := []struct {
		query    string
		at       time.Time
		min, max float64
	}{
		{"8 May 2023", day(2023, 5, 8), 1, 1},
		{"8 May 2023", time.Date(2023, 5, 8, 0, 0, 0, 0, time.UTC), 1, 1},
		{"8 May 2023", time.Date(2023, 5, 8, 23, 59, 59, 0, time.UTC), 1, 1},
		{"8 May 2023", time.Date(2023, 5, 9, 0, 0, 0, 0, time.UTC), 0.99, 1},
		{"8 May 2023", day(2023, 5, 10), 0.8, 0.95},
		{"8 May 2023", day(2023, 5, 13), 0.1, 0.5},
		{"8 May 2023", day(2023, 5, 16), 0, 0},
		{"8 May 2023", day(2022, 5, 8), 0, 0},
		{"around 8 May 2023", day(2023, 5, 16), 0.3, 0.9},
		{"May 2023", day(2023, 5, 31), 1, 1},
		{"May 2023", day(2023, 6, 5), 0.9, 0.999},
		{"May 2023", day(2023, 9, 1), 0, 0},
		{"in 2022", day(2023, 6, 1), 0.5, 0.95},
		{"in 2022", day(2024, 8, 1), 0, 0},
		{"before June 2023", day(2019, 1, 1), 1, 1},
		{"before June 2023", day(2023, 6, 20), 0.5, 0.95},
		{"before June 2023", day(2023, 10, 1), 0, 0},
		{"after June 2023", day(2023, 7, 1), 1, 1},
		{"after June 2023", day(2023, 3, 1), 0, 0},
		{"since June 2023", day(2023, 6, 1), 1, 1},
		{"until June 2023", day(2023, 6, 30), 1, 1},
		{"until June 2023", day(2023, 12, 30), 0, 0},
		{"in June", day(2023, 6, 9), 1, 1},
		{"in June", day(2020, 6, 9), 0.8, 0.8},
		{"in June", day(2020, 1, 9), 0, 0},
		{"in December", day(2022, 12, 31), 1, 1},
		{"in December", day(2022, 1, 5), 0.6, 0.8}, // beside December 2021
		{"on Tuesday", day(2023, 10, 17), 1, 1},
		{"on Tuesday", day(2023, 10, 24), 0, 0.1}, // another one
		{"3/4/2023", day(2023, 3, 4), 1, 1},
		{"3/4/2023", day(2023, 4, 3), 0, 0},
		{"yesterday", day(2023, 10, 19), 1, 1},
	}
	for _, test := range tests {
		e := one(t, test.query)
		if got := Overlap(e, test.at); got < test.min || got > test.max {
			t.Errorf("Overlap(%q, %s) = %v, want %v to %v; %v", test.query, test.at.Format(time.RFC3339), got, test.min, test.max, e)
		}
	}
}

// TestOverlapFalls: away from the range it never rises, and it is smooth.
func TestOverlapFalls(t *testing.T) {
	for _, query := range []string{"8 May 2023", "May 2023", "in 2020", "before 2020", "after May 2021", "around 1999"} {
		e := one(t, query)
		w := e.Window()
		last := 1.0
		for h := range 24 * 400 {
			at := w.To.Add(time.Duration(h) * time.Hour)
			if e.Relation == After {
				at = w.From.Add(-time.Duration(h) * time.Hour)
			}
			got := Overlap(e, at)
			if got > last || last-got > 0.2 {
				t.Fatalf("%q: %v at %v after %v", query, got, at, last)
			}
			last = got
		}
	}
}

func TestBest(t *testing.T) {
	query := Parse("was it in May 2022 or on Sun?", reference())
	if len(query) != 2 {
		t.Fatal(query)
	}
	for at, want := range map[time.Time]float64{day(2022, 5, 3): 0.98, day(2023, 10, 15): 0.6, day(2000, 10, 18): 0} {
		if got := Best(query, at); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", at, got, want)
		}
	}
}

func TestLongQueriesAreBounded(t *testing.T) {
	s := strings.Repeat("Monday and 去年五月, ", 5000)
	if n := len(Parse(s, reference())); n != MaxParse {
		t.Errorf("%d expressions in a query", n)
	}
	if n := len(parse(s, reference(), len(s))); n != 10_000 {
		t.Errorf("%d expressions without a bound", n)
	}
}

func TestWindow(t *testing.T) {
	for s, want := range map[string]string{
		"before 9 June 2023": "[1000-01-01 2023-06-09)",
		"until 9 June 2023":  "[1000-01-01 2023-06-10)",
		"after 9 June 2023":  "[2023-06-10 3000-01-01)",
		"since 9 June 2023":  "[2023-06-09 3000-01-01)",
		"on 9 June 2023":     "[2023-06-09 2023-06-10)",
	} {
		if got := one(t, s).Window().String(); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
