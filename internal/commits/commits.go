// Package commits makes memories of Git commits: what was changed, why, and in which files.
//
// Invariants: a commit makes the same memory, with the same id, however often it is read;
// secrets are taken out of its message; commits that say nothing make none.
//
// Not its job: finding the namespace, or sending anything.
package commits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"mneme/internal/redact"
	"mneme/memory"
)

const (
	// Agent is who speaks where nobody else was named.
	Agent = "git"

	maxMessage = 4000 // bytes of a message in a memory
	maxNamed   = 20   // files that its text names
	maxListed  = 100  // and its metadata
)

// Commit is one commit as Git tells it.
type Commit struct {
	Hash    string
	At      time.Time // when it was written
	Message string
	Files   []string
}

// Read lists commits, the oldest first, without merges. which are the words of `git log` that
// choose them.
func Read(ctx context.Context, dir string, which ...string) ([]Commit, error) {
	args := append([]string{"-C", dir, "-c", "core.quotePath=false", "-c", "log.showSignature=false", "log", "--no-merges", "--reverse", "--no-color",
		"--name-only", "--no-renames", "--encoding=UTF-8", "--format=%x01%H%x02%aI%x02%B%x02"}, which...)
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("read the commits of %s: %w", dir, said(err))
	}
	var all []Commit
	for _, part := range strings.Split(string(out), "\x01") {
		fields := strings.Split(part, "\x02")
		if len(fields) != 4 {
			continue // what is before the first, or a message that has such characters itself
		}
		at, err := time.Parse(time.RFC3339, fields[1])
		if err != nil {
			continue
		}
		c := Commit{Hash: fields[0], At: at, Message: strings.TrimSpace(fields[2])}
		for file := range strings.Lines(fields[3]) {
			if file = strings.TrimSpace(file); file != "" {
				c.Files = append(c.Files, file)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// said is the error of a program with what it printed.
func said(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		line, _, _ := strings.Cut(string(exit.Stderr), "\n")
		return errors.New(line)
	}
	return err
}

// noise are subjects that tell nobody anything.
var noise = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:` +
		`(?:fixup|squash|amend)! .*` +
		`|wip\b.*|tmp|temp|test(?:ing)?|fix(?:es|ed)?|update[sd]?|change[sd]?|cleanup|clean up|misc|typos?|fix(?:ed)? typos?|lint(?:ing)?|fix lint|format(?:ting)?|gofmt|prettier|stuff|save|checkpoint|initial commit|first commit|init` +
		`|merge (?:branch|pull request|remote-tracking|tag|commit) .*` +
		`|(?:build|chore)\(deps(?:-dev)?\)!?:.*|bump \S+ from \S+ to \S+.*|update dependency \S+ to .*` +
		`|(?:chore\(release\)|chore|release|bump version|version|prepare)?:? ?(?:release|bump|version)? ?(?:to )?v?\d+\.\d+(?:\.\d+)?\S*` +
		`|update (?:readme|changelog)(?:\.md)?` +
		`)[.!\s]*$`)
})

// Noise reports a commit that is not worth a memory.
func (c *Commit) Noise() bool {
	subject, _, _ := strings.Cut(c.Message, "\n")
	subject = strings.TrimSpace(subject)
	return len([]rune(subject)) < 8 || len(c.Files) == 0 || noise().MatchString(subject)
}

// trailers are lines at the end of a message that are for tools.
var trailers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^(?:signed-off-by|co-authored-by|reviewed-by|acked-by|tested-by|change-id|cc|git-svn-id):.*\n?`)
})

// Capture is the memory of a commit of a project.
func (c *Commit) Capture(agent, project string, emails bool) memory.Capture {
	text := strings.ToValidUTF8(strings.TrimSpace(trailers().ReplaceAllString(c.Message, "")), "")
	text = strings.ReplaceAll(text, "\x00", "")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + " …"
	}
	named := c.Files[:min(len(c.Files), maxNamed)]
	text += "\n\nFiles: " + strings.Join(named, ", ")
	if more := len(c.Files) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	text, _ = redact.Text(text, redact.Options{Emails: !emails})
	at := c.At
	item := memory.Capture{ID: "commit-" + c.Hash, Agent: agent, Text: text, Kind: memory.KindObservation, Tags: []string{"commit"}, OccurredAt: &at}
	item.Metadata = metadata(c, project)
	return item
}

// metadata names the commit and its files, as far as there is room.
func metadata(c *Commit, project string) json.RawMessage {
	for n := min(len(c.Files), maxListed); ; n /= 2 {
		b, err := json.Marshal(map[string]any{"commit": map[string]any{"hash": c.Hash, "project": project, "files": c.Files[:n]}})
		if err == nil && len(b) < 8<<10 || n == 0 {
			return b
		}
	}
}
