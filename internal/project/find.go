package project

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/memory"
)

// Remote is one remote of a repository, by its name in Git.
type Remote struct {
	Name string `json:"remote"`
	ID   ID     `json:"project"`
}

// Project is what a folder belongs to.
type Project struct {
	Top     string   `json:"top"`               // the folder of the worktree
	Dir     string   `json:"-"`                 // the worktree's own folder in the repository
	Git     string   `json:"-"`                 // the repository, shared by its worktrees
	Remotes []Remote `json:"remotes,omitempty"` // origin, upstream, the others by name
	Local   ID       `json:"-"`                 // its identity without a remote, which is mapped only for this one
	CopyOf  string   `json:"-"`                 // where the repository lies that it is a copy of, if that has a namespace

	place   string // where the repository lies
	known   []mark // what its own file says of that, as far as this user's memctl wrote it
	mark    mark   // the one of them that counts; nothing where there is none, or it is of another one
	own     mark   // the one that it should have
	settled bool
	near    []near // its remotes on this machine
}

// near is a remote on this machine, by the identity of its path, and the one that it leads to.
type near struct{ path, ID ID }

// IDs are the identities that fit, each once: one that is local only without a remote.
func (p *Project) IDs() []ID {
	var out []ID
	for _, r := range p.Remotes {
		if !slices.Contains(out, r.ID) {
			out = append(out, r.ID)
		}
	}
	if out == nil {
		out = []ID{p.Local}
	}
	return out
}

// leading are the remotes that say which project a repository is, the first before the second.
// Others may be a colleague's.
var leading = []string{"origin", "upstream"}

func rank(name string) int {
	if i := slices.Index(leading, name); i >= 0 {
		return i
	}
	return len(leading)
}

// lead is the identity that counts before those of other remotes; "" is none.
func (p *Project) lead() ID {
	if ids := p.IDs(); len(ids) == 1 || rank(p.Remotes[0].Name) < len(leading) {
		return ids[0]
	}
	return ""
}

// ErrNone says that a folder is in no repository.
var ErrNone = errors.New("no project")

// gitPatience is how long Git may take to answer.
const gitPatience = 5 * time.Second

// Find tells the project of a folder, as a mapping knows it.
func Find(ctx context.Context, dir string, m Mapping) (*Project, error) {
	return find(ctx, dir, m, mine)
}

func find(ctx context.Context, dir string, m Mapping, mine func(path string) bool) (*Project, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	top, gitDir, err := repository(ctx, dir, mine)
	if err != nil {
		return nil, err
	}
	if top == "" {
		return nil, memory.Errorf(memory.CodeInvalid, "%s is in no Git repository, so it is no project", dir).WithCause(ErrNone).
			WithHint("give -n NAMESPACE, or run `git init` in the folder where the project begins")
	}
	p := &Project{Top: top, Dir: gitDir, Git: common(gitDir)}
	p.place = placeOf(p.Git)
	m.recognise(p)
	remotes, err := readRemotes(ctx, p)
	if err != nil {
		return nil, err
	}
	w := walk{mine, map[step]ID{}}
	for _, r := range remotes {
		if id := m.remote(ctx, p, r[1], w, maxSteps); id != "" {
			p.Remotes = append(p.Remotes, Remote{Name: r[0], ID: id})
		}
	}
	slices.SortStableFunc(p.Remotes, func(a, b Remote) int { // the one that leads first
		return cmp.Or(cmp.Compare(rank(a.Name), rank(b.Name)), strings.Compare(a.Name, b.Name))
	})
	return p, nil
}

// repository goes up from dir to the folder that has a .git which Git takes for one; top is ""
// if none has. Git is asked where somebody else owns it.
func repository(ctx context.Context, dir string, mine func(path string) bool) (top, gitDir string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		name := filepath.Join(at, ".git")
		info, err := os.Stat(name)
		switch {
		case err == nil && info.IsDir():
			if isRepository(name) { // an empty folder is none
				return at, name, allowed(ctx, mine, at, name)
			}
		case err == nil && info.Mode().IsRegular():
			to, err := ledTo(name)
			if err != nil {
				return "", "", err
			}
			return at, to, allowed(ctx, mine, at, name, to)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", "", fmt.Errorf("look for a Git repository: %w", err)
		}
		if filepath.Dir(at) == at {
			return "", "", nil
		}
	}
}

const maxLink = 64 << 10 // bytes of a file that leads to a repository

// ledTo is the repository to which a .git leads that is a file, as that of a worktree or a submodule.
func ledTo(name string) (gitDir string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxLink)) // a bundle, which may be cloned, too, is large
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	to, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir:")
	if to = resolve(filepath.Dir(name), strings.TrimSpace(to)); !ok || !isRepository(to) {
		return "", memory.Errorf(memory.CodeInvalid, "%s does not say where the repository is", name).
			WithHint("`git status` says what is wrong with it")
	}
	return to, nil
}

// isRepository demands what Git demands: a head, objects and references.
func isRepository(gitDir string) bool {
	if !isHead(filepath.Join(gitDir, "HEAD")) {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(common(gitDir), name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

const shortestCommit = 20 // bytes of a SHA-1

// isHead reports a file that names a reference or a commit.
func isHead(path string) bool {
	if to, err := os.Readlink(path); err == nil {
		return strings.HasPrefix(to, "refs/")
	}
	b, err := readFile(path)
	if err != nil {
		return false
	}
	if ref, ok := strings.CutPrefix(string(b), "ref:"); ok {
		return strings.HasPrefix(strings.TrimSpace(ref), "refs/")
	}
	commit, err := hex.DecodeString(strings.TrimSpace(string(b)))
	return err == nil && len(commit) >= shortestCommit
}

// readFile reads a file of a repository. A pipe there would have the call wait for ever.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return os.ReadFile(path)
}

// allowed reports a repository that Git refuses, since its user does not own it and has not said
// that it is safe.
func allowed(ctx context.Context, mine func(path string) bool, top string, paths ...string) error {
	if mine(top) && !slices.ContainsFunc(paths, func(path string) bool { return !mine(path) }) {
		return nil
	}
	if _, err := askGit(ctx, top, "rev-parse", "--git-dir"); err != nil {
		return memory.Errorf(memory.CodeInvalid, "%s belongs to somebody else, and Git does not take it for a repository: %w", top, err).
			WithHint("if you trust it, `git config --global --add safe.directory %s`; or give -n NAMESPACE", top)
	}
	return nil
}

// common is the repository that a worktree's folder belongs to.
func common(gitDir string) string {
	b, err := readFile(filepath.Join(gitDir, "commondir"))
	if err != nil {
		return gitDir
	}
	return resolve(gitDir, strings.TrimSpace(string(b)))
}

// resolve is a path that may be relative to dir, without links.
func resolve(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// readRemotes are names and addresses of the remotes, as the repository's own configuration
// has them: what a machine puts in the place of an address, a mirror for example, makes no other
// project of it. Git is asked where its file cannot be read simply, and what short addresses
// are short for.
func readRemotes(ctx context.Context, p *Project) ([][2]string, error) {
	path := filepath.Join(p.Git, "config")
	b, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Git's configuration: %w", err)
	}
	remotes, simple := parseConfig(string(b))
	if !simple {
		if remotes, err = askConfig(ctx, p.Top); err != nil {
			return nil, memory.Errorf(memory.CodeInvalid, "the remotes of %s are not known: %w", p.Top, err).
				WithHint("`git remote -v` there says what is wrong; or give -n NAMESPACE")
		}
	}
	for i, r := range remotes {
		if !mayBeShort(r[1]) {
			continue
		}
		if long, err := askGit(ctx, p.Top, "remote", "get-url", r[0]); err == nil {
			remotes[i][1] = strings.TrimSuffix(long, "\n")
		}
	}
	return remotes, nil
}

// mayBeShort reports an address whose host has no dot: a name of ~/.ssh/config, or one that
// url.….insteadOf replaces.
func mayBeShort(remote string) bool {
	host, _, ok := split(remote)
	return ok && !strings.ContainsAny(host, ".:") && host != "localhost"
}

// askConfig has Git read the remotes of its file, with what that includes.
func askConfig(ctx context.Context, top string) ([][2]string, error) {
	out, err := askGit(ctx, top, "config", "--local", "--includes", "--null", "--get-regexp", `^remote\..*\.url$`)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // there are none
		return nil, nil
	}
	var all [][2]string
	for one := range strings.SplitSeq(out, "\x00") {
		key, address, ok := strings.Cut(one, "\n")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "remote."), ".url")
		if ok && !hasAddress(all, name) {
			all = append(all, [2]string{name, address})
		}
	}
	return all, err
}

// hasAddress reports whether a remote has an address: the first is the one fetched from.
func hasAddress(all [][2]string, name string) bool {
	return slices.ContainsFunc(all, func(r [2]string) bool { return r[0] == name })
}

// elsewhere are variables by which whoever calls this has Git work in another repository than the folder's, as in a hook of
// Git or an alias in a worktree.
var elsewhere = []string{"GIT_DIR", "GIT_COMMON_DIR", "GIT_CONFIG"}

func askGit(ctx context.Context, top string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", top}, args...)...)
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(one string) bool {
		name, _, _ := strings.Cut(one, "=")
		return slices.Contains(elsewhere, name)
	})
	out, err := cmd.Output()
	return string(out), err
}

// parseConfig reads the remotes of Git's configuration file. simple is false if the file has
// something that this does not read: includes, continued or quoted values.
func parseConfig(text string) (remotes [][2]string, simple bool) {
	simple = true
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			name = ""
			head, rest, ok := strings.Cut(line[1:], "]")
			lower := strings.ToLower(head)
			if !ok || strings.TrimSpace(rest) != "" && strings.TrimSpace(rest)[0] != '#' && strings.TrimSpace(rest)[0] != ';' ||
				strings.HasPrefix(lower, "include") || strings.HasPrefix(lower, "remote.") {
				simple = false
			}
			if section, quoted, ok := strings.Cut(head, ` "`); ok && strings.EqualFold(strings.TrimSpace(section), "remote") {
				name, ok = strings.CutSuffix(strings.TrimSpace(quoted), `"`)
				simple = simple && ok && !strings.ContainsRune(name, '\\')
			}
		default:
			simple = simple && !strings.HasSuffix(line, `\`)
			key, value, _ := strings.Cut(line, "=")
			if name == "" || !strings.EqualFold(strings.TrimSpace(key), "url") {
				continue
			}
			if value = strings.TrimSpace(value); strings.ContainsAny(value, "\"\\#;") {
				simple = false
			}
			if !hasAddress(remotes, name) {
				remotes = append(remotes, [2]string{name, value})
			}
		}
	}
	return remotes, simple
}
