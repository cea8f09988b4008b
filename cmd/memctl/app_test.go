package main

import (
	"bufio"
	"strings"
	"testing"

	"mneme/memory"
)

// Ten megabytes were said to be 262146 bytes: what had been read of them.
func TestTextFromStandardInputIsBounded(t *testing.T) {
	read := func(n int) (string, error) {
		a := &app{in: bufio.NewReader(strings.NewReader(strings.Repeat("a", n) + "\n"))}
		return a.textArg([]string{"-"})
	}
	if text, err := read(memory.MaxTextBytes); err != nil || len(text) != memory.MaxTextBytes {
		t.Errorf("the longest text: %d bytes, %v", len(text), err)
	}
	for _, n := range []int{memory.MaxTextBytes + 1, 10 << 20} {
		_, err := read(n)
		if memory.CodeOf(err) != memory.CodeTooLarge || !strings.Contains(err.Error(), "more than 262144 bytes") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
