package project

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// placeFile is a file in a repository by which it is known without a remote, wherever it is moved.
// It has a mark for each user who chose a namespace, who may see the repository at another place,
// as one in a container does.
const placeFile = "mneme-place"

const (
	maxMarksRead = 64 << 10 // bytes of that file
	maxMarks     = 16       // that are kept: the latest
)

// mark is a line of that file: where the repository lay, and its identity. Whoever made the
// repository may have written it, so it counts only with the key that the user's mapping has.
type mark struct {
	Place string `json:"place"`
	ID    ID     `json:"project"`
	Key   string `json:"key"`
}

// Home is what a mapping knows of a repository without a remote: where it lay, the latest last, and
// the key of its mark, which is random.
type Home struct {
	Places []string `json:"places"`
	Key    string   `json:"key"`
}

// latest is where it lies, as far as it is known.
func (h Home) latest() string {
	if len(h.Places) == 0 {
		return ""
	}
	return h.Places[len(h.Places)-1]
}

// placeOf is where a repository lies.
func placeOf(git string) string { return strings.TrimSuffix(git, string(filepath.Separator)+".git") }

// localID is the identity of what lies at path, which no other machine has.
func localID(path string) ID { return localNamed(path, path) }

// localNamed is one that is named after path, and told from others by a hash of something.
func localNamed(path, of string) ID {
	sum := sha256.Sum256([]byte(of))
	name := strings.TrimSuffix(filepath.Base(path), ".git")
	return ID("local/" + strings.ToLower(name) + "-" + hex.EncodeToString(sum[:4]))
}

// recognise finds out which identity a repository has without a remote. It is that of its mark,
// if the mapping knows that and the repository is no copy; else that of its place, if it is nobody's.
func (m Mapping) recognise(p *Project) {
	for _, at := range slices.Backward(readMarks(p.Git)) { // the latest first: a former one counts only where the mapping is older
		if m.believes(at) && (at.Key != "" || at.Place == p.place || !isRepositoryAt(at.Place)) {
			p.known = append(p.known, at)
		}
	}
	home := func(at mark) bool { // what says so, but was never met here, may be a copy
		return at.Place == p.place && (at.Key == "" || slices.Contains(m.Homes[at.ID].Places, at.Place))
	}
	if i := slices.IndexFunc(p.known, home); i >= 0 {
		p.mark = p.known[i]
	} else if len(p.known) > 0 {
		if p.CopyOf = m.elsewhere(p.known[0], p.place); p.CopyOf == "" {
			p.mark = p.known[0]
		}
	}
	switch p.Local = localID(p.place); {
	case p.mark.ID != "":
		p.Local = p.mark.ID
	case m.Homes[p.Local].Key != "" || slices.Contains(m.Places[p.Local], p.place):
		p.Local = m.free(p.place) // another repository lay there when a namespace was chosen
	}
	p.settled = m.Projects[p.Local] == "" || home(p.mark) && m.Homes[p.Local].latest() == p.place
}

// maxSteps is how many repositories of this machine are followed, from a clone to the one it was cloned from.
const maxSteps = 4

// walk is one look for what a repository is a clone of.
type walk struct {
	mine func(path string) bool
	led  map[step]ID // what was followed, once: clones may have each other as remotes
}

// step is a repository, by its folder, and how many may be followed from there.
type step struct {
	dir   string
	steps int
}

// remote is the identity of a remote of p.
func (m Mapping) remote(ctx context.Context, p *Project, address string, w walk, steps int) ID {
	address, top := strings.TrimSpace(address), p.base()
	id := normalise(address, top)
	if _, _, far := split(address); far || id == "" {
		return id
	}
	led := m.source(ctx, p, address, w, steps)
	p.near = append(p.near, near{id, led})
	return led
}

// source is the identity of a repository of this machine that p has as a remote: the one by which it is known itself, and
// not that of another one which lay there. p keeps what was used in it. One that belongs to somebody else says nothing of
// itself, unless Git takes it: it could name any project of this user's.
func (m Mapping) source(ctx context.Context, p *Project, address string, w walk, steps int) ID {
	top := p.base()
	id := normalise(address, top)
	former := localID(localPath(strings.TrimPrefix(address, "file://"), filepath.Dir(p.Git))) // escapes stood in it, and it began elsewhere
	for _, id := range []ID{id, former} {
		if at := m.Places[id]; slices.Contains(at, p.Top) || slices.Contains(at, p.place) { // also in its worktrees
			return id
		}
	}
	if used := m.usedIn(p.clone(id)); used != "" {
		return used
	}
	of := sourceAt(wholePath(address, top))
	if of == nil || allowed(ctx, w.mine, of.Top, of.Dir, of.Git) != nil {
		return id
	}
	m.recognise(of)
	if m.Projects[of.Local] == "" && steps > 0 {
		if lead := m.followed(ctx, of, w, steps-1); lead != "" {
			return lead
		}
	}
	if path := localPath(address, top); of.mark.ID != "" || of.Local != localID(of.place) || of.place != path && lyingAt(path) != nil {
		return of.Local // where another one lies at that path, the identity of the path is that one's
	}
	return id
}

// base is where the relative path of a remote begins: the same in all worktrees.
func (p *Project) base() string {
	if p.Dir == p.Git { // a submodule's repository lies elsewhere
		return p.Top
	}
	return p.place
}

// sourceAt is the repository that the path of a remote names, as Git looks for it; nil is none.
func sourceAt(path string) *Project {
	if p := lyingAt(path); p != nil {
		return p
	}
	return lyingAt(path + ".git")
}

// lyingAt is the repository in a folder, or that is one itself; nil is none.
func lyingAt(folder string) *Project {
	for _, name := range []string{filepath.Join(folder, ".git"), folder} {
		gitDir := name
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			if gitDir, err = ledTo(name); err != nil {
				continue
			}
		}
		if isRepository(gitDir) {
			gitDir = resolve("", gitDir)
			p := &Project{Top: placeOf(resolve("", name)), Dir: gitDir, Git: common(gitDir)}
			p.place = placeOf(p.Git)
			return p
		}
	}
	return nil
}

// followed is the identity that a repository which others are clones of has from its own remotes, "" where it has none,
// or several of which none leads.
func (m Mapping) followed(ctx context.Context, of *Project, w walk, steps int) (lead ID) {
	at := step{of.Dir, steps}
	if lead, ok := w.led[at]; ok {
		return lead
	}
	defer func() { w.led[at] = lead }()
	remotes, err := readRemotes(ctx, of)
	if err != nil { // which a call there says
		return ""
	}
	slices.SortStableFunc(remotes, func(a, b [2]string) int { return cmp.Compare(rank(a[0]), rank(b[0])) })
	for _, r := range remotes {
		switch id := m.remote(ctx, of, r[1], w, steps); {
		case id == "":
		case rank(r[0]) < len(leading):
			return id
		case lead != "" && lead != id:
			return ""
		default:
			lead = id
		}
	}
	return lead
}

// believes reports that this user's memctl wrote a mark. One without a key, as it was written
// once, counts until the mapping has one, if it names a project by its place, and says what the mapping does.
func (m Mapping) believes(at mark) bool {
	if m.Projects[at.ID] == "" {
		return false
	}
	if key := m.Homes[at.ID].Key; key != "" {
		return at.Key == key
	}
	return at.Key == "" && at.ID == localID(at.Place) && slices.Contains(m.Places[at.ID], at.Place)
}

// isRepositoryAt reports that a repository lies at a place.
func isRepositoryAt(place string) bool {
	return isRepository(filepath.Join(place, ".git")) || isRepository(place)
}

// elsewhere is where the repository lies that a mark was written for, if that is not at place: what
// lies there with the same mark is a copy. It is "" for a repository that was moved to place.
func (m Mapping) elsewhere(at mark, place string) string {
	for _, there := range []string{at.Place, m.Homes[at.ID].latest()} {
		if there != place && m.lies(there, at) {
			return there
		}
	}
	return ""
}

// lies reports a repository at place that is known by the mark, whatever place that names, and not by a later one.
func (m Mapping) lies(place string, at mark) bool {
	if place == "" {
		return false
	}
	return slices.ContainsFunc([]string{filepath.Join(place, ".git"), place}, func(git string) bool {
		for _, other := range slices.Backward(readMarks(git)) {
			if m.believes(other) {
				return other.ID == at.ID && other.Key == at.Key
			}
		}
		return false
	})
}

// readMarks reads the marks of a repository. One was two lines once, and the first of them before
// that: its identity is that of its place.
func readMarks(git string) []mark {
	path := filepath.Join(git, placeFile)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // a pipe would have the call wait for ever
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var all []mark
	lines := bufio.NewScanner(io.LimitReader(f, maxMarksRead))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		var at mark
		switch {
		case json.Unmarshal([]byte(line), &at) == nil && at.Place != "" && at.ID != "":
			all = append(all, at)
		case filepath.IsAbs(line):
			all = append(all, mark{Place: line, ID: localID(line)})
		case len(all) == 1 && strings.HasPrefix(line, "local/"):
			all[0].ID = ID(line)
		}
	}
	return all
}

// Settled reports that the repository and the mapping say the same of where it lies.
func (p *Project) Settled() bool { return p.settled }

// Place is the file by which a repository is known without a remote, and what it should hold;
// text is "" where there is nothing to write. It is written before the mapping, so the mark that counted until then stays in it if
// it has another key or identity: it counts on where the mapping cannot be written, or was read before.
func (p *Project) Place() (path, text string) {
	path = filepath.Join(p.Git, placeFile)
	if p.own.ID == "" || p.Git == "" {
		return path, ""
	}
	before := readMarks(p.Git)
	all := slices.DeleteFunc(slices.Clone(before), func(at mark) bool { return at == p.own || slices.Contains(p.known, at) })
	if p.mark.ID != "" && (p.mark.ID != p.own.ID || p.mark.Key != p.own.Key) {
		all = append(all, p.mark)
	}
	all = append(all[max(0, len(all)+1-maxMarks):], p.own)
	if slices.Equal(before, all) {
		return path, ""
	}
	for _, at := range all {
		b, err := json.Marshal(at)
		if err != nil {
			panic(err) // of three strings
		}
		text += string(b) + "\n"
	}
	return path, text
}

// free is an identity for what lies at place that is no other project's.
func (m Mapping) free(place string) ID {
	id := localID(place)
	for n := 2; m.Projects[id] != ""; n++ {
		id = localNamed(place, place+"\n"+strconv.Itoa(n))
	}
	return id
}

// Settle has a repository that has a namespace without a remote be known by where it lies now. Where
// another one lies with its mark, a copy that came to have its namespace while it was away, as on a
// disk that was not there, they are two projects with that namespace from then on.
func (m Mapping) Settle(p *Project) {
	if p.settled {
		return
	}
	if p.mark.Place == p.place && m.elsewhere(p.mark, p.place) != "" {
		namespace, home := m.Projects[p.Local], m.Homes[p.Local]
		home.Places = slices.DeleteFunc(home.Places, func(at string) bool { return at == p.place }) // it is the other one's
		m.Homes[p.Local] = home
		p.Local = m.free(p.place)
		m.Projects[p.Local], m.Places[p.Local] = namespace, []string{p.place}
	} else if places := m.Places[p.Local]; p.mark.ID != "" {
		m.Places[p.Local] = slices.DeleteFunc(places, func(at string) bool { return at == p.mark.Place || at == p.place })
		m.Places[p.Local] = append(m.Places[p.Local], p.place)
	}
	m.sign(p)
}

// sign notes where a repository lies, and what Place returns for it.
func (m Mapping) sign(p *Project) {
	home := m.Homes[p.Local]
	if home.Key == "" {
		home.Key = rand.Text()
	}
	home.Places = append(slices.DeleteFunc(home.Places, func(at string) bool { return at == p.place }), p.place)
	home.Places = home.Places[max(0, len(home.Places)-maxPlaces):]
	m.Homes[p.Local] = home
	p.own, p.settled = mark{p.place, p.Local, home.Key}, true
}
