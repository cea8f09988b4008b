package text

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reasons for which Validate refuses a text.
var (
	ErrNotUTF8 = errors.New("not valid UTF-8")
	ErrNUL     = errors.New("contains a NUL byte")
)

// Validate reports whether s is text: valid UTF-8 without NUL bytes. The error
// wraps ErrNotUTF8 or ErrNUL and names the byte offset.
func Validate(s string) error {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return fmt.Errorf("text at byte %d: %w", i, ErrNUL)
	}
	if utf8.ValidString(s) {
		return nil
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Errorf("text at byte %d: %w", i, ErrNotUTF8)
		}
		i += n
	}
	return nil
}

// FixUTF8 returns s with each run of invalid bytes replaced by one U+FFFD and NUL
// bytes dropped, so that Validate accepts it.
func FixUTF8(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// Lines returns the numbers, from 1, of the lines that s[start:end] begins and
// ends on. A newline belongs to the line it ends. Bounds outside s are moved in.
func Lines(s string, start, end int) (startLine, endLine int) {
	start = min(max(start, 0), len(s))
	end = min(max(end, start), len(s))
	startLine = 1 + strings.Count(s[:start], "\n")
	body := s[start:end]
	return startLine, startLine + strings.Count(strings.TrimSuffix(body, "\n"), "\n")
}
