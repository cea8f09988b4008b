package verbs

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"mneme/client"
	"mneme/memory"
)

// dryRun reports whether a request only asks whether it would be done.
func dryRun(r *http.Request) bool {
	b, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(b))
	return bytes.Contains(b, []byte(`"dry_run":true`))
}

// TestApplySaysHowFarItCame: the second of three namespaces is refused. What came before it
// stays, the error counts it, and the same command goes on from there.
func TestApplySaysHowFarItCame(t *testing.T) {
	node := newFakeNode()
	refuse := true
	h := node.handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse && r.Method == http.MethodPatch && !dryRun(r) {
			fakeProblem(w, memory.Errorf(memory.CodeForbidden, "not yours"))
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	if _, err := c.CreateNamespace(ctx, memory.CreateNamespace{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	var want declared
	if err := want.add("x.yaml", []byte("namespaces: [{name: a}, {name: b, settings: {search.newer: off}}, {name: c}]")); err != nil {
		t.Fatal(err)
	}
	apply := func() ([]string, error) {
		changes, err := plan(ctx, c, want)
		if err != nil {
			t.Fatal(err)
		}
		if err := tryOut(ctx, c, changes); err != nil {
			t.Fatal(err)
		}
		return applied{Namespaces: changes}.changed(), carryOut(ctx, c, changes)
	}
	changed, err := apply()
	if !slices.Equal(changed, []string{"a", "b", "c"}) || memory.CodeOf(err) != memory.CodeForbidden ||
		!strings.HasPrefix(err.Error(), "namespace b: not yours; 1 namespace before it is as declared now") {
		t.Errorf("%v, %v", changed, err)
	}
	if node.namespaces["a"] == nil || node.namespaces["c"] != nil {
		t.Errorf("there are %v", node.namespaces)
	}
	refuse = false
	if changed, err = apply(); err != nil || !slices.Equal(changed, []string{"b", "c"}) {
		t.Errorf("again: %v, %v", changed, err)
	}
	if changed, err = apply(); err != nil || len(changed) > 0 {
		t.Errorf("once more: %v, %v", changed, err)
	}
}
