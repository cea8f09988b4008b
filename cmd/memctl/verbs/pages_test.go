package verbs

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"mneme/cmd/internal/pages"
)

// With -pages a release has its man pages and completions written.
var pagesInto = flag.String("pages", "", "write man pages and completions below this `folder`, and leave them there")

// TestPages: each verb that help shows has a man page, and each shell a completion.
func TestPages(t *testing.T) {
	prefix := *pagesInto
	if prefix == "" {
		prefix = t.TempDir()
	}
	a := newApp(t.Context(), plainSystem(io.Discard))
	defer a.close()
	root := rootCmd(a)
	addCompletion(root)
	addHelp(root)
	if err := pages.Write(root, prefix); err != nil {
		t.Fatal(err)
	}
	read := func(dir, name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(prefix, filepath.FromSlash(dir), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	verbs := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		verbs++
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page := read(pages.Man, name+".1")
		if !strings.Contains(page, ".SH NAME\n"+strings.ReplaceAll(name, "-", `\-`)) && !strings.Contains(page, ".SH NAME\n"+name) {
			t.Errorf("the page of %s begins %.200q", name, page)
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
				walk(sub)
			}
		}
	}
	walk(root)
	if verbs < 60 {
		t.Errorf("%d verbs", verbs)
	}
	if page := read(pages.Man, "memctl-search.1"); !strings.Contains(page, "MNEME_NAMESPACE") || !strings.Contains(page, "memctl search --kind decision") {
		t.Errorf("memctl-search.1: %s", page)
	}
	for dir, name := range map[string]string{pages.Bash: "memctl", pages.Zsh: "_memctl", pages.Fish: "memctl.fish", pages.PowerShell: "memctl.ps1"} {
		if text := read(dir, name); !strings.Contains(text, "__complete") {
			t.Errorf("%s/%s does not ask memctl", dir, name)
		}
	}
}
