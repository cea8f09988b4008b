package verbs

import (
	"io"
	"testing"
)

// What comes while nobody reads is left out, and what comes later is not.
func TestUnheard(t *testing.T) {
	read, write := io.Pipe()
	defer func() { _ = read.Close() }()
	u := &unheard{to: write}
	say := func(line string) {
		t.Helper()
		if n, err := io.WriteString(u, line); n != len(line) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	hear := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if _, err := io.ReadFull(read, b); err != nil || string(b) != want {
			t.Errorf("%s, %v, and not %s", b, err, want)
		}
	}
	say("one")
	say("two")
	hear("one")
	<-u.over
	heard := make(chan struct{})
	go func() {
		hear("three")
		hear("four")
		close(heard)
	}()
	say("three")
	<-u.over // however long that takes to be read
	say("four")
	<-heard
}
