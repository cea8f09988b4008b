package verbs

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/internal/agentsync"
	"mneme/internal/commits"
	"mneme/internal/project"
	"mneme/memory"
)

// gitHost is the name by which integrate knows Git.
const gitHost = "git"

const (
	commitPatience = 4 * time.Second // of a commit that is made
	maxUnsent      = 1000
	commitBatch    = 100
)

// integrateGit installs the hook, and makes memories of the history that is there.
func integrateGit(ctx context.Context, a *app, f integrateFlags) error {
	p, err := projectsOf(a).locate("", project.Mapping{})
	if err != nil {
		return err
	}
	path, err := gitHookPath(ctx, p)
	if err != nil {
		return err
	}
	in := &integration{Agent: gitHost, Scope: agentsync.Project, project: p, hook: path, Removed: f.remove, DryRun: f.dryRun}
	in.host.Title, in.where.Project = "Git", p.Top
	var since time.Time
	if f.since != "" && !f.remove {
		if since, err = parseTime(f.since, a.sys.now()); err != nil {
			return err
		}
	}
	if err := in.write(ctx, a, f); err != nil {
		return err
	}
	made := ""
	var sent commitsSent
	if !f.remove {
		made = in.ensure(ctx, a)
	}
	if !f.dryRun && !since.IsZero() {
		if sent, err = sendCommits(ctx, a, p, in.Namespace, "--since="+since.Format(time.RFC3339), "HEAD"); err != nil {
			return err
		}
	}
	doc := struct {
		*integration
		Commits *commitsSent `json:"commits,omitempty"`
	}{integration: in}
	if !since.IsZero() {
		doc.Commits = &sent
	}
	return a.emit(doc, nil, func() {
		in.host.Told = "each commit becomes a memory that names its files; merges and commits that say nothing do not"
		if !since.IsZero() && !f.dryRun {
			in.host.Told += "\n" + sent.String()
		}
		in.tellGit(a, made)
	})
}

// planGit says what Git's hook becomes.
func (in *integration) planGit(a *app, f integrateFlags) ([]*agentsync.Change, error) {
	line := ""
	if !f.remove {
		more, err := givenFlags(a)
		if err != nil {
			return nil, err
		}
		program, _, err := programFor(a)
		if err != nil {
			return nil, err
		}
		line = agentsync.Command(program, slices.Concat([]string{"hook", "commits", "-q", "-n", in.Namespace}, more)...) + " </dev/null >/dev/null 2>&1"
	}
	change, err := agentsync.GitHook(in.hook, in.project.Top, in.project.Git, line, f.remove)
	if err != nil {
		return nil, err
	}
	return []*agentsync.Change{change}, nil
}

func (in *integration) tellGit(a *app, made string) {
	if in.DryRun {
		in.tell(a, made)
		return
	}
	in.tellWarnings(a)
	a.printf("Git, in %s\n", in.where.Project)
	printFiles(a, in.Files)
	if in.Removed {
		return
	}
	a.printf("memories are kept in namespace %s\n", in.Namespace)
	if len(in.Before) > 0 {
		a.printf("before it was namespace %s: what was kept there stays there\n", strings.Join(in.Before, ", "))
	}
	if made != "" {
		a.println(made)
	}
	a.println(in.host.Told)
	a.next("memctl search -n %s --tag commit \"…\"", in.Namespace)
}

// gitHookPath is where Git looks for the hook of this repository. A folder that all
// repositories share is refused.
func gitHookPath(ctx context.Context, p *project.Project) (string, error) {
	ask := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", p.Top}, args...)...).Output()
		return strings.TrimSuffix(string(out), "\n"), err
	}
	dir, err := ask("rev-parse", "--git-path", "hooks")
	if err != nil {
		return "", memory.Errorf(memory.CodeInvalid, "Git does not say where the hooks of %s are: %w", p.Top, err).WithHint("`git status` there says what is wrong")
	}
	own := agentsync.Command("git", "-C", p.Top, "config", "--local", "core.hooksPath", filepath.Join(p.Git, "hooks")) // whole: it counts in each worktree
	if scope, err := ask("config", "--show-scope", "--get", "core.hooksPath"); err == nil && !strings.HasPrefix(scope, "local\t") && !strings.HasPrefix(scope, "worktree\t") {
		return "", memory.Errorf(memory.CodeInvalid, "the hooks of %s come from a folder that other repositories share (core.hooksPath)", p.Top).
			WithHint("`%s` gives this repository its own; or have the shared post-commit run `memctl hook commits`", own)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.Top, dir)
	}
	if _, err := os.Stat(dir); errors.Is(err, syscall.ENOTDIR) {
		return "", memory.Errorf(memory.CodeInvalid, "core.hooksPath leads to %s, which cannot be a folder, so Git runs no hooks there", dir).WithHint("`%s` names those of the repository", own)
	}
	if filepath.Base(dir) == "_" && filepath.Base(filepath.Dir(dir)) == ".husky" {
		dir = filepath.Dir(dir) // the scripts there are made by husky, and call those above
	}
	return filepath.Join(dir, "post-commit"), nil
}

// commitsSent is what became of commits.
type commitsSent struct {
	Created int `json:"created"`
	Known   int `json:"known"`   // were memories before
	Skipped int `json:"skipped"` // say nothing
	Refused int `json:"refused"`
	Waiting int `json:"waiting"` // the node could not take them yet

	later []string        // hashes of those, the oldest first
	done  map[string]bool // and of those that need not be sent again
}

func (s commitsSent) String() string {
	text := count(s.Created, "commit is a memory now", "commits are memories now")
	if s.Known > 0 {
		text += ", " + count(s.Known, "was one before", "were before")
	}
	if s.Skipped > 0 {
		text += ", " + count(s.Skipped, "says nothing", "say nothing")
	}
	if s.Waiting > 0 {
		text += ", " + count(s.Waiting, "waits for the next commit, for the node cannot take it yet", "wait for the next commit, for the node cannot take them yet")
	}
	if s.Refused > 0 {
		text += ", " + count(s.Refused, "was refused", "were refused")
	}
	return text
}

// sendCommits makes memories of commits. The same commit makes one, however often it is sent.
func sendCommits(ctx context.Context, a *app, p *project.Project, ns string, which ...string) (sent commitsSent, err error) {
	settings, err := hookSettings(a)
	if err != nil {
		return sent, err
	}
	all, err := commits.Read(ctx, p.Top, which...)
	if err != nil {
		return sent, memory.Errorf(memory.CodeInvalid, "%w", err)
	}
	c, err := a.dial()
	if err != nil {
		return sent, err
	}
	agent := first(a.flags.as, a.sys.getenv("MNEME_AGENT"), commits.Agent)
	sent.done = map[string]bool{}
	for batch := range slices.Chunk(all, commitBatch) {
		if err := sent.send(ctx, c, ns, batch, func(one *commits.Commit) memory.Capture {
			item := one.Capture(agent, string(p.IDs()[0]), settings.Emails)
			item.Scope = settings.Scope
			return item
		}); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// send makes memories of some commits, and counts what became of each.
func (s *commitsSent) send(ctx context.Context, c *client.Client, ns string, batch []commits.Commit, capture func(*commits.Commit) memory.Capture) error {
	var items []memory.Capture
	for i := range batch {
		if batch[i].Noise() {
			s.done[batch[i].Hash] = true
			s.Skipped++
			continue
		}
		items = append(items, capture(&batch[i]))
	}
	if len(items) == 0 {
		return nil
	}
	resp, err := c.CaptureBatch(ctx, ns, items, client.CaptureOptions{Origin: memory.OriginHook})
	if err != nil {
		return err
	}
	for i, r := range resp.Results {
		hash := strings.TrimPrefix(items[i].ID, commits.IDPrefix)
		if r.Error != nil && r.Error.Code.Transient() {
			s.Waiting++
			s.later = append(s.later, hash)
			continue
		}
		s.done[hash] = true
		switch r.Status {
		case memory.StatusCreated:
			s.Created++
		case memory.StatusDuplicate, memory.StatusConflict: // made by another version of memctl
			s.Known++
		default:
			s.Refused++
		}
	}
	return nil
}

func hookCommitsCmd(a *app) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "commits",
		Short: "Make memories of the latest Git commit, or of those since a time",
		Long: `Makes a memory of the commit that was made last, and of those before it that a node that
was away did not get. Git calls this after each commit ('memctl integrate git'). During a
rebase nothing is done. The same commit makes one memory, however often this runs.`,
		Example: `  memctl hook commits
  memctl hook commits --since 90d`,
		Args: wantArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := projectsOf(a).locate("", project.Mapping{})
			if err != nil {
				return err
			}
			defer hookWakes(a, startAuto, hookNote(a))()
			w, err := hookWork(cmd.Context(), a, p.Top, func(ctx context.Context) (string, error) { return soleNamespace(ctx, a) })
			if err != nil {
				return err
			}
			ns := w.namespace
			var sent commitsSent
			if since != "" {
				t, err := parseTime(since, a.sys.now())
				if err != nil {
					return err
				}
				if sent, err = sendCommits(cmd.Context(), a, p, ns, "--since="+t.Format(time.RFC3339), "HEAD"); err != nil {
					return err
				}
			} else if sent, err = commitMade(cmd.Context(), a, p, ns); err != nil {
				hookNote(a)("memctl hook commits: %v", err)
				return err
			}
			return a.emit(sent, nil, func() { a.println(sent.String()) })
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "the commits since this time")
	return cmd
}

const unsentHint = "`memctl hook commits --since 90d` sends those of 90 days"

// commitMade sends the commit that was made, and those that could not be sent before.
func commitMade(ctx context.Context, a *app, p *project.Project, ns string) (sent commitsSent, err error) {
	settings, err := hookSettings(a)
	if err != nil || !settings.Capture || a.sys.getenv("MNEME_HOOKS") == "off" || rebasing(p) {
		return sent, err
	}
	ctx, cancel := context.WithTimeout(ctx, commitPatience)
	defer cancel()
	head, err := exec.CommandContext(ctx, "git", "-C", p.Top, "rev-parse", "HEAD").Output()
	if err != nil {
		return sent, memory.Errorf(memory.CodeInvalid, "%s has no commit", p.Top)
	}
	u, made := unsent{filepath.Join(p.Git, "mneme-unsent")}, strings.TrimSpace(string(head))
	if err := u.change(ctx, func(all []string) []string { // before it is sent: a commit that is cut off is sent by the next
		all = append(slices.DeleteFunc(all, func(hash string) bool { return hash == made }), made)
		if over := len(all) - maxUnsent; over > 0 {
			all = all[over:]
			hookNote(a)("memctl hook commits: %s no more: %d wait at most (%s)", count(over, "commit that waited longest waits", "commits that waited longest wait"), maxUnsent, unsentHint)
		}
		return all
	}); err != nil {
		return sent, memory.Errorf(memory.CodeUnavailable, "in %s this commit was not noted: %w", p.Top, err).WithHint("%s", unsentHint)
	}
	sending := flock.New(u.file + ".sending")
	if _, err := sending.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return sent, memory.Errorf(memory.CodeUnavailable, "another call sends commits of %s, and this one waits for the next: %w", p.Top, err)
	}
	defer func() { _ = sending.Unlock() }()
	waiting, err := u.read()
	if err != nil || len(waiting) == 0 { // the call before sent this one, too
		return sent, err
	}
	latest := slices.Clone(waiting)
	slices.Reverse(latest) // as Git would list them
	sent, err = sendCommits(ctx, a, p, ns, append([]string{"--no-walk=unsorted", "--ignore-missing"}, latest...)...)
	ends, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	return sent, errors.Join(err, u.change(ends, func(all []string) []string {
		return slices.DeleteFunc(all, func(hash string) bool {
			if err != nil { // what was sent before that does not wait with the rest
				return sent.done[hash]
			}
			return slices.Contains(waiting, hash) && !slices.Contains(sent.later, hash)
		})
	}))
}

// unsent is the file of the commits that wait for the node, the oldest first. Its lock is held while it is changed,
// and not while commits are sent: others note theirs meanwhile.
type unsent struct{ file string }

func (u unsent) read() ([]string, error) {
	b, err := os.ReadFile(u.file)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return slices.DeleteFunc(strings.Fields(string(b)), func(hash string) bool { return !isHash(hash) }), nil // others would be options of Git
}

func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) >= 40
}

func (u unsent) change(ctx context.Context, f func([]string) []string) error {
	lock := flock.New(u.file + ".lock")
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	all, err := u.read()
	if err != nil {
		return err
	}
	return replaceFile(u.file, 0o600, func(file *os.File) error {
		_, err := file.WriteString(strings.Join(f(all), "\n"))
		return err
	})
}

// rebasing reports that commits are made anew, not new ones.
func rebasing(p *project.Project) bool {
	for _, name := range []string{"rebase-merge", "rebase-apply"} {
		if _, err := os.Stat(filepath.Join(p.Dir, name)); err == nil {
			return true
		}
	}
	return false
}
