package text

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// TestGoldenTerms holds the terms of every character in common use and of a few
// texts. If it fails after an update of a library, the terms of stored records
// and of new queries differ: raise AnalyzerVersion with it.
func TestGoldenTerms(t *testing.T) {
	h := sha256.New()
	for r := rune(1); r < 0x20000; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		s := "x" + string(r) + "y " + string(r) + string(r)
		fmt.Fprintln(h, strings.Join(Terms(s), " "))
	}
	for _, s := range append(seeds, englishText, chineseText) {
		fmt.Fprintln(h, strings.Join(Terms(s), " "))
	}
	const want = "86cb44dcfba3026b949b0d5389e4b566"
	if got := hex.EncodeToString(h.Sum(nil)[:16]); got != want {
		t.Errorf("terms of AnalyzerVersion %d have the fingerprint %s, want %s", AnalyzerVersion, got, want)
	}
}
