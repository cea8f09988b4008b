package project

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/memory"
)

// mappingVersion is the version of the mapping's file.
const mappingVersion = 1

// maxPlaces is how many places of a project are known: the latest.
const maxPlaces = 32

// Mapping is which namespace each project has.
type Mapping struct {
	Version  int           `json:"version"`
	Projects map[ID]string `json:"projects"`
	// Places are the folders of clones and worktrees in which a project's namespace was used,
	// the latest last.
	Places map[ID][]string `json:"places,omitempty"`
	// Homes are those of repositories that are known without a remote.
	Homes map[ID]Home `json:"homes,omitempty"`
	// Clones are those of repositories of this machine that a project's namespace was used in, the latest last. It counts
	// in them when what they are clones of is gone, or another one lies there.
	Clones map[ID][]Clone `json:"clones,omitempty"`
}

// Clone is where a clone lies, the identity of the path that it names as its remote, and when it was made, as far as that
// shows: another clone of that path may lie there later, of another repository.
type Clone struct {
	Place string `json:"place"`
	Of    ID     `json:"of"`
	Made  string `json:"made,omitempty"`
}

// clone is what a mapping knows p by as a clone. Git writes a description when it makes a repository, and never again.
func (p *Project) clone(of ID) Clone {
	one := Clone{Place: p.place, Of: of}
	if info, err := os.Stat(filepath.Join(p.Git, "description")); err == nil {
		one.Made = info.ModTime().UTC().Format(time.RFC3339Nano)
	}
	return one
}

// ParseMapping reads the mapping's file, which path names in errors; without content nothing
// is mapped.
func ParseMapping(path string, b []byte) (Mapping, error) {
	m := Mapping{Version: mappingVersion, Projects: map[ID]string{}, Places: map[ID][]string{}, Homes: map[ID]Home{}, Clones: map[ID][]Clone{}}
	if b == nil {
		return m, nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	m.Projects = nil
	if err := dec.Decode(&m); err != nil || m.Projects == nil {
		return m, memory.Errorf(memory.CodeInvalid, "%s is damaged: %w", path, cmp.Or(err, errors.New("it does not say which namespace projects have"))).
			WithHint("correct it, or delete it and run `memctl project use NAMESPACE` again in each project")
	}
	if m.Version != mappingVersion {
		return m, memory.Errorf(memory.CodeInvalid, "%s has version %d, this memctl knows %d", path, m.Version, mappingVersion).
			WithHint("use a newer memctl, or delete the file")
	}
	if m.Places == nil {
		m.Places = map[ID][]string{}
	}
	if m.Homes == nil {
		m.Homes = map[ID]Home{}
	}
	if m.Clones == nil {
		m.Clones = map[ID][]Clone{}
	}
	for id, ns := range m.Projects {
		if bad := memory.CheckName("namespace", ns); bad != nil {
			return m, memory.Errorf(memory.CodeInvalid, "%s maps %s to a namespace that cannot be: %w", path, id, bad).
				WithHint("`memctl project use NAMESPACE` in that project corrects it")
		}
	}
	return m, nil
}

// ReadMapping is ParseMapping of a file, which need not be there.
func ReadMapping(path string) (Mapping, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Mapping{}, fmt.Errorf("read the namespaces of projects: %w", err)
	}
	return ParseMapping(path, b)
}

// Encode is the file's content.
func (m Mapping) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

// Choice is an identity of a project and the namespace that it has; "" is none.
type Choice struct {
	ID        ID     `json:"project"`
	Namespace string `json:"namespace,omitempty"`
}

// Choose tells the namespace of a project. That of the remote that leads counts, and what was
// chosen before there was one. What other remotes have is another project's: where nothing was
// chosen for this one, or nothing leads and they differ, the error names two that fit.
func (m Mapping) Choose(p *Project) (Choice, error) {
	of := func(id ID) Choice { return Choice{id, m.Projects[id]} }
	var own []Choice
	for _, id := range p.Known() {
		if c := of(id); c.Namespace != "" {
			own = append(own, c)
		}
	}
	for _, c := range own[min(1, len(own)):] {
		if c.Namespace != own[0].Namespace {
			return Choice{}, unsure(p, own[0], c)
		}
	}
	ids, lead := p.IDs(), p.lead()
	if len(own) == 0 || lead == "" && of(p.Local).Namespace == "" {
		for _, id := range ids[1:] {
			if c := of(id); c.Namespace != of(ids[0]).Namespace {
				return Choice{}, unsure(p, of(ids[0]), c)
			}
		}
	}
	if len(own) > 0 {
		return own[0], nil
	}
	return Choice{ID: lead}, nil
}

// unsure says that two choices fit.
func unsure(p *Project, a, b Choice) error {
	has := func(c Choice) string {
		if c.Namespace == "" {
			return "which has no namespace"
		}
		return "whose namespace is " + c.Namespace
	}
	return memory.Errorf(memory.CodeConflict, "%s is project %s, %s, and project %s, %s", p.Top, a.ID, has(a), b.ID, has(b)).
		WithHint("`memctl project use NAMESPACE` in that folder decides; -n NAMESPACE for one call")
}

// Known are the identities under which a namespace of this project is kept.
func (p *Project) Known() []ID {
	out := p.named()
	if p.Local != "" && !slices.Contains(out, p.Local) {
		out = append(out, p.Local)
	}
	return out
}

// named are the identities that a choice is kept for: that of the remote that leads, or all.
func (p *Project) named() []ID {
	if id := p.lead(); id != "" {
		return []ID{id}
	}
	return p.IDs()
}

// Carried reports that the namespace was chosen before the project had a remote.
func (c Choice) Carried(p *Project) bool {
	return c.Namespace != "" && c.ID == p.Local && !slices.Contains(p.IDs(), p.Local)
}

// Why says, where a choice needs a word, which of a project's identities has the namespace; it
// is "" where there is only one.
func (c Choice) Why(m Mapping, p *Project) string {
	switch {
	case c.Namespace == "" || len(p.Remotes) == 0:
		return ""
	case c.Carried(p):
		return "it had that before it had a remote"
	}
	for _, r := range p.Remotes {
		if ns := m.Projects[r.ID]; r.ID != c.ID && ns != c.Namespace {
			has := "has none of its own"
			if ns != "" {
				has = "has " + ns
			}
			return fmt.Sprintf("that is the one of %s; %s, the remote %s, %s", c.ID, r.ID, r.Name, has)
		}
	}
	return ""
}

// Propose is the namespace for a project that has none: its owner and repository. It is an
// error where two remotes differ, or where that namespace is another project's.
func (m Mapping) Propose(p *Project) (Choice, error) {
	ids := p.IDs()
	if len(ids) > 1 {
		return Choice{}, memory.Errorf(memory.CodeConflict, "%s has remotes of two projects: %s and %s", p.Top, ids[0], ids[1]).
			WithHint("say which namespace it has: `memctl project use NAMESPACE --create`, for example `memctl project use %s --create`", proposed(ids[0]))
	}
	ns := proposed(ids[0])
	for _, id := range slices.Sorted(maps.Keys(m.Projects)) {
		if m.Projects[id] == ns && id != ids[0] {
			return Choice{}, memory.Errorf(memory.CodeConflict, "the namespace %s would fit %s and is that of %s", ns, ids[0], id).
				WithHint("`memctl project use %s` shares it; `memctl project use OTHER --create` keeps them apart", ns)
		}
	}
	return Choice{ids[0], ns}, nil
}

const maxName = 63 // bytes of a namespace's name

// proposed is named after what an identity has of Latin letters and digits, and by a hash of it
// where there is none.
func proposed(id ID) string {
	host, rest, _ := strings.Cut(string(id), "/")
	hash := ""
	if i := strings.LastIndexByte(rest, '-'); host == "local" && i >= 0 {
		rest, hash = rest[:i], rest[i:]
	}
	if ns := memory.MakeName(strings.ReplaceAll(rest, "/", "-")); ns != "" {
		return memory.MakeName(ns[:min(len(ns), maxName-len(hash))] + hash)
	}
	if hash == "" {
		sum := sha256.Sum256([]byte(id))
		hash = "-" + hex.EncodeToString(sum[:4])
	}
	return "project" + hash
}

// Use maps a project to a namespace: under the remote that leads, and under all where none
// does. One that was moved is known by its new place from then on.
func (m Mapping) Use(p *Project, namespace string) {
	m.Settle(p)
	for _, id := range p.named() {
		m.Projects[id] = namespace
		m.Arrive(id, p)
	}
	if m.Projects[p.Local] != "" {
		m.Projects[p.Local] = namespace
		m.sign(p)
	}
}

// Drop takes an identity out.
func (m Mapping) Drop(id ID) {
	delete(m.Projects, id)
	delete(m.Places, id)
	delete(m.Homes, id)
	delete(m.Clones, id)
}

// Knows reports whether the mapping has it that the namespace of id was used where the project lies. One of the time before
// there were clones in it lacks what they are clones of.
func (m Mapping) Knows(id ID, p *Project) bool {
	return slices.Contains(m.Places[id], p.Top) && !slices.ContainsFunc(p.near, func(of near) bool {
		return of.ID == id && !slices.Contains(m.Clones[id], p.clone(of.path))
	})
}

// Arrive notes that it is, and returns where it was used before: the latest place, "" if none
// is known, or it was used here.
func (m Mapping) Arrive(id ID, p *Project) (before string) {
	all := m.Places[id]
	if n := len(all); n > 0 && !slices.Contains(all, p.Top) {
		before = all[n-1]
	}
	all = append(slices.DeleteFunc(all, func(at string) bool { return at == p.Top }), p.Top)
	m.Places[id] = all[max(0, len(all)-maxPlaces):]
	for _, of := range p.near {
		if of.ID == id {
			m.clone(id, p.clone(of.path))
		}
	}
	return before
}

// clone notes that the namespace of id was used in a clone, and of no other project.
func (m Mapping) clone(id ID, one Clone) {
	for other, all := range m.Clones {
		if all = slices.DeleteFunc(all, func(c Clone) bool { return c.Place == one.Place && c.Of == one.Of }); len(all) == 0 {
			delete(m.Clones, other)
			continue
		}
		m.Clones[other] = all
	}
	all := append(m.Clones[id], one)
	m.Clones[id] = all[max(0, len(all)-maxPlaces):]
}

// usedIn is the project whose namespace was used in a clone, "" if none was.
func (m Mapping) usedIn(one Clone) ID {
	for id, all := range m.Clones {
		if m.Projects[id] != "" && slices.Contains(all, one) {
			return id
		}
	}
	return ""
}

// Forget takes a project out, as Use put it in, and tells under which identities it was there.
func (m Mapping) Forget(p *Project) []ID {
	known := slices.DeleteFunc(p.Known(), func(id ID) bool { return m.Projects[id] == "" })
	for _, id := range known {
		m.Drop(id)
	}
	return known
}
