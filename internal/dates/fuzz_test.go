package dates

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// reference is a Friday.
func reference() time.Time { return time.Date(2023, time.October, 20, 15, 30, 0, 0, time.UTC) }

// check holds what is true of the expressions of any text.
func check(t *testing.T, s string, out []Expr) {
	t.Helper()
	end := 0
	for _, e := range out {
		if e.Start < end || e.End <= e.Start || e.End > len(s) {
			t.Fatalf("%q: expression at %d..%d after %d", s, e.Start, e.End, end)
		}
		end = e.End
		if utf8.ValidString(s) && !utf8.ValidString(s[e.Start:e.End]) {
			t.Fatalf("%q: %q cuts a character", s, s[e.Start:e.End])
		}
		if !e.From.Before(e.To) || e.From.Year() < minYear || e.To.Year() > maxYear+1 {
			t.Fatalf("%q: %v", s, e)
		}
		if e.Confidence <= 0 || e.Confidence > 1 || e.Grain > GrainYear || e.Relation > Since {
			t.Fatalf("%q: %v", s, e)
		}
		w := e.Window()
		if !w.From.Before(w.To) {
			t.Fatalf("%q: window of %v", s, e)
		}
		for _, at := range []time.Time{e.From, e.To, w.From, e.From.AddDate(0, 0, -400), e.To.AddDate(0, 3, 0)} {
			if x := Overlap(e, at); !(x >= 0 && x <= 1) {
				t.Fatalf("%q: Overlap(%v, %v) = %v", s, e, at, x)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/english.txt", "testdata/chinese.txt"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			f.Add(line, int64(1697815800))
		}
	}
	f.Add("\xff1 May \xe4\xbb", int64(-1<<40))
	f.Fuzz(func(t *testing.T, s string, unix int64) {
		for _, ref := range []time.Time{reference(), time.Unix(unix%(1<<40), 0).UTC(), time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2999, 12, 31, 23, 0, 0, 0, time.UTC)} {
			check(t, s, Parse(s, ref))
		}
	})
}
