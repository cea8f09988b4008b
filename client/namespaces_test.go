package client

import (
	"context"
	"net/http"
	"testing"

	"mneme/memory"
)

func TestNamespacesAreReadPageByPage(t *testing.T) {
	pages := map[string]memory.NamespaceList{
		"":  {Namespaces: []memory.Namespace{{Name: "a"}, {Name: "b"}}, Cursor: "b"},
		"b": {Namespaces: []memory.Namespace{{Name: "c"}}},
	}
	page := func(w http.ResponseWriter, r *http.Request) { reply(pages[r.FormValue("cursor")])(w, r) }
	c, _ := serve(t, Options{}, page)
	list, err := c.Namespaces(context.Background())
	if err != nil || len(list.Namespaces) != 3 || list.Namespaces[2].Name != "c" || list.Cursor != "" {
		t.Errorf("%+v, %v", list, err)
	}
	pages["b"] = pages[""] // a node that never comes to an end
	if list, err := c.Namespaces(context.Background()); memory.CodeOf(err) != memory.CodeInternal {
		t.Errorf("%+v, %v", list, err)
	}
}
