package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/cmd/internal/pages"
)

// With -pages a release has its man pages and completions written.
var pagesInto = flag.String("pages", "", "write man pages and completions below this `folder`, and leave them there")

func TestPages(t *testing.T) {
	prefix := *pagesInto
	if prefix == "" {
		prefix = t.TempDir()
	}
	root := rootCmd(system{}, nil)
	addCompletion(root)
	if err := pages.Write(root, prefix); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		pages.Man + "/memnode.1": "<data-dir>/config.yaml", pages.Man + "/memnode-config.1": "memnode config",
		pages.Bash + "/memnode": "__complete", pages.Zsh + "/_memnode": "__complete",
		pages.Fish + "/memnode.fish": "__complete", pages.PowerShell + "/memnode.ps1": "__complete",
	} {
		b, err := os.ReadFile(filepath.Join(prefix, filepath.FromSlash(name)))
		if text := strings.ReplaceAll(string(b), `\-`, "-"); err != nil || !strings.Contains(text, says) {
			t.Errorf("%s: %v, without %q: %.1000s", name, err, says, text)
		}
	}
}
