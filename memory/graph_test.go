package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestGraphChangesAreChecked(t *testing.T) {
	entity := func(name, kind string, observations ...string) GraphOperation {
		return GraphOperation{CreateEntities: []GraphEntity{{Name: name, Type: kind, Observations: observations}}}
	}
	long := strings.Repeat("x", MaxGraphName)
	many := make([]string, MaxGraphItems)
	for name, c := range map[string]struct {
		change GraphChange
		code   Code
	}{
		"good":                 {GraphChange{Operations: []GraphOperation{entity(long, "", "", "a\nb")}}, ""},
		"an empty list":        {GraphChange{Operations: []GraphOperation{{DeleteEntities: []string{}}}}, ""},
		"about a subject":      {GraphChange{Subject: "ada", Operations: []GraphOperation{entity("a", "t")}}, ""},
		"no operation":         {GraphChange{}, CodeInvalid},
		"no list":              {GraphChange{Operations: []GraphOperation{{}}}, CodeInvalid},
		"two lists":            {GraphChange{Operations: []GraphOperation{{DeleteEntities: []string{}, DeleteRelations: []GraphRelation{}}}}, CodeInvalid},
		"a subject's deletion": {GraphChange{Subject: "ada", Operations: []GraphOperation{{DeleteEntities: []string{"a"}}}}, CodeInvalid},
		"no name":              {GraphChange{Operations: []GraphOperation{entity("", "t")}}, CodeInvalid},
		"no end":               {GraphChange{Operations: []GraphOperation{{CreateRelations: []GraphRelation{{From: "a", Type: "t"}}}}}, CodeInvalid},
		"a long name":          {GraphChange{Operations: []GraphOperation{entity(long+"x", "t")}}, CodeTooLarge},
		"a long type":          {GraphChange{Operations: []GraphOperation{{DeleteRelations: []GraphRelation{{From: "a", To: "b", Type: long + "x"}}}}}, CodeTooLarge},
		"NUL":                  {GraphChange{Operations: []GraphOperation{entity("a", "t", "a\x00")}}, CodeInvalid},
		"no UTF-8":             {GraphChange{Operations: []GraphOperation{{DeleteObservations: []GraphDeletion{{Entity: "a\xff"}}}}}, CodeInvalid},
		"many things":          {GraphChange{Operations: []GraphOperation{entity("a", "t", many...)}}, CodeTooLarge},
		"many bytes": {GraphChange{Operations: []GraphOperation{{AddObservations: []GraphObservations{{Entity: "a", Contents: []string{
			strings.Repeat("x", MaxObservation), strings.Repeat("y", MaxObservation)}}}}, {DeleteEntities: lots(MaxGraphBytes/1024, strings.Repeat("z", 1024))}}}, CodeTooLarge},
		"a long observation": {GraphChange{Operations: []GraphOperation{entity("a", "t", strings.Repeat("x", MaxObservation+1))}}, CodeTooLarge},
		"an odd id":          {GraphChange{ID: "a b", Operations: []GraphOperation{entity("a", "t")}}, CodeInvalid},
		"no agent":           {GraphChange{Agent: "-", Operations: []GraphOperation{entity("a", "t")}}, CodeInvalid},
	} {
		if c.change.Agent == "" {
			c.change.Agent = "me"
		}
		var code Code
		if err := c.change.Validate(); err != nil {
			code = err.Code
			if err.Code == CodeTooLarge && err.Hint == "" {
				t.Errorf("%s: it does not say what to do: %v", name, err)
			}
		}
		if code != c.code {
			t.Errorf("%s: %q, want %q", name, code, c.code)
		}
	}
}

func lots(n int, s string) (out []string) {
	for range n {
		out = append(out, s)
	}
	return out
}

func TestMissingEntity(t *testing.T) {
	for _, name := range []string{"Nobody", `a "quoted" one`, "日本\n語", strings.Repeat("x", MaxGraphName)} {
		err := fmt.Errorf("wrapped: %w", NoEntity(name))
		if got, ok := MissingEntity(err); !ok || got != name {
			t.Errorf("%q comes back as %q, %v", name, got, ok)
		}
	}
	for _, err := range []error{nil, errors.New("there is no entity"), NoNamespace("x"), Errorf(CodeNotFound, "there is no entity unquoted")} {
		if name, ok := MissingEntity(err); ok {
			t.Errorf("%v is about %q", err, name)
		}
	}
}

func TestGraphLines(t *testing.T) {
	for _, line := range []string{
		`{"type":"entity","name":"Alice","entityType":"person","observations":["likes Go"]}`,
		`{"type":"relation","from":"Alice","to":"memnode","relationType":"works on"}`,
	} {
		var l GraphLine
		if err := json.Unmarshal([]byte(line), &l); err != nil || (l.Entity == nil) == (l.Relation == nil) {
			t.Errorf("%s: %+v, %v", line, l, err)
		}
		if b, err := json.Marshal(l); err != nil || string(b) != line {
			t.Errorf("%s becomes %s, %v", line, b, err)
		}
	}
	var other GraphLine
	if err := json.Unmarshal([]byte(`{"type":"thing"}`), &other); err != nil || other != (GraphLine{}) {
		t.Errorf("%+v, %v", other, err)
	}
	if _, err := json.Marshal(other); err == nil {
		t.Error("a line of nothing was written")
	}
}

func TestGraphEventsArePrinted(t *testing.T) {
	e := GraphEvent{CreatedEntities: []GraphEntity{{Name: "a"}, {Name: "b"}}, CreatedRelations: []GraphRelation{{"a", "b", "knows"}},
		AddedObservations: []GraphObservations{{"a", []string{"x", "y"}}}, DeletedEntities: []string{"c"},
		DeletedRelations: []GraphRelation{{"c", "a", "had"}}, DeletedObservations: []GraphDeletion{{"b", []string{"z"}}}}
	if got, want := e.String(), "created a, b · related a knows b · observed a: x; y · deleted c · unrelated c had a · dropped b: z"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := (&GraphEvent{}).String(); got != "" {
		t.Errorf("nothing is %q", got)
	}
}
