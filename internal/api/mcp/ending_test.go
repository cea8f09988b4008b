package mcp

import (
	"io"
	"testing"
)

// TestAReadAfterTheEndHadNeitherMessageNorError: of a connection that was closed as its input ended, about every second time. The
// SDK asks again for ever then, so that memctl mcp stayed, with a processor of its own.
func TestAReadAfterTheEndHadNeitherMessageNorError(t *testing.T) {
	for _, said := range []string{"", `{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\n"} {
		for range 50 {
			in, write := io.Pipe()
			conn, err := (&Stdio{In: in, Out: io.Discard}).Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := conn.(*stdio)
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			if said != "" { // the reader stops behind a whole line, and sees no end
				if _, err := io.WriteString(write, said); err != nil {
					t.Fatal(err)
				}
			}
			_ = write.Close()
			<-c.inputEnded
			for range 3 {
				if m, err := c.Read(t.Context()); err == nil && m == nil {
					t.Fatal("neither a message nor an error")
				}
			}
		}
	}
}

// TestAClosedConnectionPassedOnCalls that had come before: they were made, and nobody could be answered.
func TestAClosedConnectionPassedOnCalls(t *testing.T) {
	in, write := io.Pipe()
	defer func() { _ = write.Close() }()
	conn, err := (&Stdio{In: in, Out: io.Discard}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := conn.(*stdio)
	if _, err := io.WriteString(write, callOne+"\n"); err != nil {
		t.Fatal(err)
	}
	<-c.changed // it stands in the line
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Read(t.Context()); err != io.EOF {
		t.Errorf("%v, %v", m, err)
	}
}
