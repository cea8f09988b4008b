package node

import (
	"os"
	"path/filepath"
	"strings"
)

// installGuide is what people follow, and what is followed here.
const installGuide = "../../../docs/operate/install.md"

// walk runs the commands of a section of the guide as they are printed, in a folder where
// deploy is, and returns what they print.
func (c *cluster) walk(section string) string {
	c.t.Helper()
	script := printed(c, section)
	for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
		c.say("$ %s", line)
	}
	bin, err := filepath.Abs(filepath.Dir(*memctl))
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := c.Shell(c.folder, script, bin)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		c.say("%s", line)
	}
	return out
}

// printed are the commands of a section.
func printed(c *cluster, section string) string {
	c.t.Helper()
	b, err := os.ReadFile(installGuide)
	if err != nil {
		c.t.Fatal(err)
	}
	_, text, found := strings.Cut(string(b), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, begins := strings.Cut(text, "```sh\n")
	script, _, ends := strings.Cut(text, "```\n")
	if !found || !begins || !ends {
		c.t.Fatalf("%s has no commands in a section %q", installGuide, section)
	}
	return script
}
