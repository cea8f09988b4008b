package text

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// workByte is the work of a byte that is not ASCII.
const workByte = 4

// Work estimates the work of analysing s without doing it: that of a byte of ASCII is
// 1, which is some 10 to 100 ns. Other characters count by the bytes that they have when
// decomposed, so that one which stands for a whole sentence, such as U+FDFA, is counted
// as such.
func Work(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			n++
			i++
			continue
		}
		p := norm.NFKC.PropertiesString(s[i:])
		size := max(p.Size(), 1)
		n += workByte * max(size, len(p.Decomposition()))
		i += size
	}
	return n
}
