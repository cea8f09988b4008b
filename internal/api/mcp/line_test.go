package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// TestAnAnswerIsTheLineThatTheSDKWrites: with the same members, of ids and results of every sort, in one line.
func TestAnAnswerIsTheLineThatTheSDKWrites(t *testing.T) {
	for _, raw := range []any{nil, 1.0, -7.0, "a", "\"\\<é\u2028", ""} {
		id, err := jsonrpc.MakeID(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*jsonrpc.Response{
			{ID: id, Result: json.RawMessage(`{}`)}, {ID: id, Result: json.RawMessage(`{"text":"a <b> & \u2028","n":[1,2.5,null]}`)},
			{ID: id, Result: json.RawMessage("{\n \"a\": 1\r\n}")}, {ID: id, Error: &jsonrpc.Error{Code: 7, Message: "no"}}, {ID: id, Error: errors.New("no")},
		} {
			got, err := encode(r)
			want, wantErr := jsonrpc.EncodeMessage(r)
			if (err == nil) != (wantErr == nil) || bytes.ContainsAny(got, "\r\n") {
				t.Fatalf("%q, %v; the SDK says %v", got, err, wantErr)
			}
			if same(t, got) != same(t, want) {
				t.Errorf("%s\nand not %s", got, want)
			}
		}
	}
}

// same is JSON in one form.
func same(t *testing.T, raw []byte) string {
	t.Helper()
	if len(raw) == 0 {
		return ""
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
