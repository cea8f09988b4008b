package text

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// segmentsURI is an address of n segments of two letters.
func segmentsURI(n int) string {
	var b strings.Builder
	b.WriteString("mem://team")
	for i := range n {
		fmt.Fprintf(&b, "/%c%c", 'a'+i/26%26, 'a'+i%26)
	}
	return b.String()
}

// TestEachSegmentOfAnAddressCopiedTheOthers: the terms so far were put into a new set
// for each segment, so an address of 1 KiB took 3.7 ms.
func TestEachSegmentOfAnAddressCopiedTheOthers(t *testing.T) {
	spent := func(segments int) uint64 {
		s := segmentsURI(segments)
		AnalyzeURI(s)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 10 {
			AnalyzeURI(s)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / 10
	}
	if short, long := spent(40), spent(320); long > 16*short {
		t.Errorf("eight times the segments take %d bytes instead of %d", long, short)
	}
}

// TestAddressTwin compares with a look through all terms for each new one.
func TestAddressTwin(t *testing.T) {
	for _, s := range []string{segmentsURI(100), segmentsURI(30) + segmentsURI(30), "mem://a/Read_Me.md/a/me/read?me#a&A"} {
		var want []string
		add := func(terms []string) {
			for _, term := range terms {
				if !slices.Contains(want, term) {
					want = append(want, term)
				}
			}
		}
		_, path, _ := strings.Cut(s, "://")
		segments := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/?#&", r) })
		for _, segment := range segments {
			add(wholeTerm(segment))
		}
		for _, segment := range segments {
			add(IndexTerms(segment))
		}
		if got := AnalyzeURI(s); !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", s, got, want)
		}
	}
}
