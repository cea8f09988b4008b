package client

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"mneme/memory"
)

// TestGraphChangeIsSentOnce: a change whose answer was lost is sent again under the same id, one
// that the caller did not give included.
func TestGraphChangeIsSentOnce(t *testing.T) {
	c, rec := serve(t, Options{Agent: "me"}, lose, reply(memory.GraphChanged{Status: memory.GraphDuplicate}))
	got, err := GraphOf(c, "ns").Change(t.Context(), memory.GraphChange{Operations: []memory.GraphOperation{{DeleteEntities: []string{"a"}}}})
	if err != nil || got.Status != memory.GraphDuplicate {
		t.Fatalf("%+v, %v", got, err)
	}
	sent := rec.requests()
	if len(sent) != 2 || sent[0].Body != sent[1].Body || !strings.Contains(sent[0].Body, `"id":"`) {
		t.Errorf("%+v", sent)
	}
	c, _ = serve(t, Options{Agent: "me"}, refuse(memory.NoEntity(`Nobody "x"`)))
	_, err = GraphOf(c, "ns").Change(t.Context(), memory.GraphChange{})
	if name, ok := memory.MissingEntity(err); !ok || name != `Nobody "x"` || memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("%q %v, %v", name, ok, err)
	}
}

func TestGraphStream(t *testing.T) {
	lines := `{"type":"entity","name":"Alice","entityType":"person","observations":["likes Go"]}` + "\n" + `{"type":"relation","from":"Alice","to":"b","relationType":"c"}` + "\n"
	stop := errors.New("stop")
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		yield  error
		code   memory.Code
		lines  int
	}{
		"all":       {ndjson(lines), nil, "", 2},
		"nothing":   {ndjson(""), nil, "", 0},
		"cut off":   {ndjson(lines + `{"type"`), nil, memory.CodeUnavailable, 2},
		"told why":  {ndjson(lines + `{"error":{"code":"unavailable","detail":"an erasure","status":503}}` + "\n"), nil, memory.CodeUnavailable, 2},
		"a portal":  {text(""), nil, memory.CodeUnavailable, 0},
		"other":     {ndjson(`{"type":"thing"}`), nil, memory.CodeInternal, 0},
		"refused":   {refuse(memory.NoNamespace("ns")), nil, memory.CodeNotFound, 0},
		"not taken": {ndjson(lines), stop, "", 1},
	} {
		client, _ := serve(t, Options{}, c.answer)
		var got []memory.GraphLine
		err := GraphOf(client, "ns").Stream(t.Context(), ReadOptions{}, func(l memory.GraphLine) error { got = append(got, l); return c.yield })
		if c.yield != nil && !errors.Is(err, c.yield) || c.yield == nil && memory.CodeOf(err) != c.code || len(got) != c.lines {
			t.Errorf("%s: %d lines, %v", name, len(got), err)
		}
		if c.lines == 2 && !reflect.DeepEqual(got, []memory.GraphLine{{Entity: &memory.GraphEntity{Name: "Alice", Type: "person", Observations: []string{"likes Go"}}},
			{Relation: &memory.GraphRelation{From: "Alice", To: "b", Type: "c"}}}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
