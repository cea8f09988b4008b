package verbs

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestRunbooksNameVerbsAndFlagsThatExist: a command that is printed where somebody is in a
// hurry has to work. What it looks at are the lines of blocks of all pages that begin with
// memctl, or run it in a pod.
func TestRunbooksNameVerbsAndFlagsThatExist(t *testing.T) {
	top, looked := filepath.Join("..", "..", "..", "docs"), 0
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
				for _, span := range spanOf.FindAllStringSubmatch(block, -1) {
					looked++
					checkSpan(t, path, strings.Fields(quoted.ReplaceAllString(span[1], "quoted")))
				}
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
				if strings.Contains(line, `"$@"`) { // a function that is defined
					continue
				}
				line = quoted.ReplaceAllString(line, "quoted")
				line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "#")
				line, _, _ = strings.Cut(line, "|")
				line, _, _ = strings.Cut(line, " > ")
				if _, inPod, found := strings.Cut(line, " -- memctl "); found { // kubectl exec POD -- memctl
					line = "memctl " + inPod
				}
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

var spanOf = regexp.MustCompile("`memctl ([^`|;]+)`")

// checkSpan holds a command within a sentence against what there is: its verb, and the names of its
// flags. What stands for something else, or is left out, is not looked at.
func checkSpan(t *testing.T, path string, words []string) {
	t.Helper()
	if strings.ContainsAny(words[0], ".-") || slices.Contains(words, "…") {
		return
	}
	root := rootCmd(newApp(context.Background(), system{now: time.Now}))
	root.InitDefaultCompletionCmd() // which Execute does
	cmd, _, err := root.Find(words)
	if err != nil || cmd == root {
		t.Errorf("%s: memctl %s: no such verb (%v)", path, strings.Join(words, " "), err)
		return
	}
	for _, w := range words {
		name, is := strings.CutPrefix(w, "--")
		if name, _, _ = strings.Cut(name, "="); is && name != "help" && name != "" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			t.Errorf("%s: memctl %s: there is no --%s", path, strings.Join(words, " "), name)
		}
	}
}

var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

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

// logged writes one line of each sort that pages look for, as memnode does in one of its formats.
func logged(h func(io.Writer, *slog.HandlerOptions) slog.Handler) string {
	var out strings.Builder
	log := slog.New(h(&out, nil))
	log.Info("memory takes part")
	log.Info("slow search", "namespaces", []string{"team-a"})
	log.Warn("request failed", "code", "internal")
	log.Warn("waiting for the other nodes: this node and others wait for each other, and none of them comes back by itself")
	log.Error("the log is not whole")
	out.WriteString("memnode: data directory /var/lib/mneme is in use\n")
	return out.String()
}

// TestRunbooksReadBothLogs: on Kubernetes the log is JSON, and a pattern for text found nothing
// there, or everything.
func TestRunbooksReadBothLogs(t *testing.T) {
	if _, err := exec.LookPath("grep"); err != nil {
		t.Skip("grep is not here")
	}
	text := logged(func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) })
	jsons := logged(func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, o) })
	pattern := regexp.MustCompile(`(?m)(?:nodelog|memnode\.log|kubectl .* logs [^|]*)(?: [^|\n]*)?\| ((?:grep(?: -\w+)? '[^']+'(?: \| )?)+)|^grep ('[^']+') memnode\.log \| (grep -\w+ '[^']+')`)
	looked := 0
	for _, glob := range []string{"*.md", "alerts/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "operate", glob))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			page, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range pattern.FindAllStringSubmatch(string(page), -1) {
				command := strings.TrimSuffix(m[1], " | ")
				if m[2] != "" {
					command = "grep " + m[2] + " | " + m[3]
				}
				looked++
				found := func(log string) int {
					cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
					cmd.Stdin = strings.NewReader(log)
					out, _ := cmd.Output() // 1 where it finds nothing
					return strings.Count(string(out), "\n")
				}
				if a, b := found(text), found(jsons); a != b || a == 0 || a == strings.Count(text, "\n") {
					t.Errorf("%s: %s finds %d lines of %d in text and %d in JSON", file, command, a, strings.Count(text, "\n"), b)
				}
			}
		}
	}
	if looked < 6 {
		t.Errorf("only %d patterns", looked)
	}
}
