package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestRunbooksNameVerbsAndFlagsThatExist: a command that is printed where somebody is in a
// hurry has to work. What it looks at are the lines of blocks of docs/operate that begin with
// memctl.
func TestRunbooksNameVerbsAndFlagsThatExist(t *testing.T) {
	top, looked := filepath.Join("..", "..", "docs", "operate"), 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, block := range strings.Split(string(text), "```") {
			if i%2 == 0 {
				continue
			}
			for line := range strings.Lines(block) {
				line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "#")
				line, _, _ = strings.Cut(line, "|")
				words := strings.Fields(line)
				if len(words) == 0 || words[0] != "memctl" {
					continue
				}
				looked++
				checkCommand(t, path, words[1:])
			}
		}
		return nil
	})
	if err != nil || looked < 20 {
		t.Errorf("%d commands: %v", looked, err)
	}
}

// checkCommand finds the verb, and parses its flags.
func checkCommand(t *testing.T, path string, words []string) {
	t.Helper()
	root := rootCmd(newApp(context.Background(), system{now: time.Now}))
	cmd, rest, err := root.Find(words)
	switch {
	case err != nil || cmd == root:
		t.Errorf("%s: memctl %s: no such verb (%v)", path, strings.Join(words, " "), err)
		return
	case cmd.HasSubCommands() && cmd.Run == nil && cmd.RunE == nil:
		t.Errorf("%s: memctl %s: what of %s?", path, strings.Join(words, " "), cmd.Name())
		return
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlagSet(cmd.Flags())
	flags.AddFlagSet(cmd.InheritedFlags())
	flags.AddFlagSet(root.PersistentFlags())
	if err := flags.Parse(rest); err != nil {
		t.Errorf("%s: memctl %s: %v", path, strings.Join(words, " "), err)
		return
	}
	if cmd.Args != nil && !strings.Contains(strings.Join(words, " "), ";") {
		if err := cmd.Args(cmd, flags.Args()); err != nil {
			t.Errorf("%s: memctl %s: %v", path, strings.Join(words, " "), err)
		}
	}
}
