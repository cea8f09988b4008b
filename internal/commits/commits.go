// Package commits makes memories of Git commits: what was changed, why, and in which files.
//
// Invariants: a commit makes the same memory, with the same id, however often it is read;
// secrets are taken out of its message and of the names of its files; commits that say nothing make none.
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
	// IDPrefix is before the hash in the id of a commit's memory.
	IDPrefix = "commit-"

	maxMessage = 4000 // bytes of a message in a memory
	maxName    = 4096 // bytes of the name of a file
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
	args := append([]string{"-C", dir, "-c", "core.quotePath=false", "-c", "log.showSignature=false", "-c", "log.showRoot=true", "log", "--no-merges", "--reverse", "--no-color",
		"--name-only", "--no-renames", "--encoding=UTF-8", "-z", "--format=%x00%H%x00%aI%x00%B%x00"}, which...)
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("read the commits of %s: %w", dir, said(err))
	}
	all, ok := parse(string(out))
	if !ok {
		return nil, fmt.Errorf("read the commits of %s: git log prints what is not understood", dir)
	}
	return all, nil
}

// parse reads what git log -z prints. Only NUL separates, for messages and names of files may
// hold any other character. Before a commit and behind its message is an empty field, and the
// first of its files has a line end before it.
func parse(out string) ([]Commit, bool) {
	if out == "" {
		return nil, true
	}
	var all []Commit
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for len(fields) >= 5 {
		at, err := time.Parse(time.RFC3339, fields[2])
		if err != nil || fields[0] != "" || fields[4] != "" {
			return nil, false
		}
		c := Commit{Hash: fields[1], At: at, Message: strings.TrimSpace(fields[3])}
		if fields = fields[5:]; len(fields) > 0 && strings.HasPrefix(fields[0], "\n") {
			for fields[0] = fields[0][1:]; len(fields) > 0 && fields[0] != ""; fields = fields[1:] {
				c.Files = append(c.Files, fields[0])
			}
		}
		all = append(all, c)
	}
	return all, len(fields) == 0
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
	opts := redact.Options{Emails: !emails}
	text, cut, _ := redact.Head(c.Message, maxMessage, opts)
	text = strings.ToValidUTF8(strings.TrimSpace(trailers().ReplaceAllString(text, "")), "")
	if cut {
		text += " …"
	}
	files := make([]string, min(len(c.Files), maxListed))
	for i := range files {
		name, _, _ := redact.Head(c.Files[i], maxName, opts)
		files[i] = strings.ToValidUTF8(name, "")
	}
	named := files[:min(len(files), maxNamed)]
	text += "\n\nFiles: " + strings.Join(named, ", ")
	if more := len(c.Files) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	at := c.At
	item := memory.Capture{ID: IDPrefix + c.Hash, Agent: agent, Text: text, Kind: memory.KindObservation, Tags: []string{"commit"}, OccurredAt: &at}
	item.Metadata = metadata(c.Hash, project, files)
	return item
}

// metadata names the commit and its files, as far as there is room.
func metadata(hash, project string, files []string) json.RawMessage {
	for n := len(files); ; n /= 2 {
		b, err := json.Marshal(map[string]any{"commit": map[string]any{"hash": hash, "project": project, "files": files[:n]}})
		if err == nil && len(b) < 8<<10 || n == 0 {
			return b
		}
	}
}
