package mcp

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A line is a message, or is refused by one line of JSON.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"{", "null", "[]", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"1.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, refused := parse(line)
		if (m == nil) != (refused != nil) || refused != nil && (!json.Valid(refused) || bytes.Contains(refused, []byte("\n"))) {
			t.Errorf("%v, %q", m, refused)
		}
	})
}
