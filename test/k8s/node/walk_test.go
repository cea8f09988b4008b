package node

import (
	"os"
	"path/filepath"
	"strings"
)

// guides is where the pages are that people follow, and that are followed here.
const guides = "../../../docs/operate"

// walk runs the commands of a section of the installation guide as they are printed, in a folder
// where deploy is, and returns what they print.
func (c *cluster) walk(section string) string {
	c.t.Helper()
	return c.walkPage("install.md", section)
}

// walkPage is walk for any page.
func (c *cluster) walkPage(page, section string) string {
	c.t.Helper()
	return c.script(printed(c, filepath.Join(guides, page), section))
}

// script runs commands in the cluster's folder, and says them and what they print.
func (c *cluster) script(script string) string {
	c.t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
		c.say("$ %s", line)
	}
	out, err := c.try(script)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		c.say("%s", line)
	}
	return out
}

// try runs commands that may fail, and says nothing.
func (c *cluster) try(script string) (string, error) {
	c.t.Helper()
	bin, err := filepath.Abs(filepath.Dir(*memctl))
	if err != nil {
		c.t.Fatal(err)
	}
	return c.Shell(c.folder, script, bin)
}

// printed are the commands of a section of a page, those of its blocks one after the other,
// without its sections of lower rank.
func printed(c *cluster, page, section string) string {
	c.t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		c.t.Fatal(err)
	}
	_, text, found := strings.Cut(string(b), "# "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	text, _, _ = strings.Cut(text, "\n### ")
	blocks := strings.Split(text, "```sh\n")
	script := ""
	for _, block := range blocks[1:] {
		commands, _, ends := strings.Cut(block, "```\n")
		found = found && ends
		script += commands
	}
	if !found || script == "" {
		c.t.Fatalf("%s has no commands in a section %q", page, section)
	}
	return script
}
