package mcp

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestACallWasMadeInTheFoldersOfAnother that came meanwhile, or in none, where the client said meanwhile that they
// changed.
func TestACallWasMadeInTheFoldersOfAnother(t *testing.T) {
	var in []string
	s := &surface{folders: &folders{}, Options: Options{Connect: func(_ context.Context, _ http.Header, folders []string) (Caller, error) {
		in = folders
		return Caller{}, errors.New("no node")
	}}}
	call := func(folder string, meanwhile func()) {
		t.Helper()
		ask := s.folders.ask(func(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
			meanwhile()
			if _, err := s.caller(ctx, req.(*mcp.CallToolRequest)); err == nil {
				t.Error("there is a node")
			}
			return nil, nil
		})
		req := &mcp.CallToolRequest{Session: new(mcp.ServerSession), Params: &mcp.CallToolParamsRaw{
			Meta:           mcp.Meta{mcp.MetaKeyClientCapabilities: map[string]any{"roots": map[string]any{}}},
			InputResponses: mcp.InputResponseMap{asking: &mcp.ListRootsResult{Roots: []*mcp.Root{{URI: "file://" + folder}}}},
		}}
		if _, err := ask(t.Context(), "tools/call", req); err != nil {
			t.Fatal(err)
		}
		if want := []string{filepath.FromSlash(folder)}; !slices.Equal(in, want) {
			t.Errorf("a call in %q was made in %q", want, in)
		}
	}
	others := func(want ...string) { // a call for which they are not asked, as one that completes an id
		t.Helper()
		if got := s.folders.of(t.Context()); !slices.Equal(got, want) {
			t.Errorf("others are made in %q, not in %q", got, want)
		}
	}
	call("/shop", func() {})
	others(filepath.FromSlash("/shop"))
	call("/shop", func() { call("/next", func() {}) })
	others(filepath.FromSlash("/next"))
	call("/shop", func() { s.folders.changed(t.Context(), nil) })
	others()
}

// TestARootIsAFolderOfThisMachine, or is passed over.
func TestARootIsAFolderOfThisMachine(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///shop": "/shop", "file://localhost/shop": "/shop", "file:///a%20b/c": "/a b/c",
		"file://elsewhere/shop": "", "https://localhost/shop": "", "/shop": "", "%": "",
	} {
		if got := folderOf(uri); got != filepath.FromSlash(want) && !(runtime.GOOS == "windows" && got == filepath.FromSlash(strings.TrimPrefix(want, "/"))) {
			t.Errorf("%s is %q", uri, got)
		}
	}
}
