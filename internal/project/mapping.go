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
	"slices"
	"strings"

	"mneme/memory"
)

// mappingVersion is the version of the mapping's file.
const mappingVersion = 1

// Mapping is which namespace each project has.
type Mapping struct {
	Version  int           `json:"version"`
	Projects map[ID]string `json:"projects"`
}

// ParseMapping reads the mapping's file, which path names in errors; without content nothing
// is mapped.
func ParseMapping(path string, b []byte) (Mapping, error) {
	m := Mapping{Version: mappingVersion, Projects: map[ID]string{}}
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

// Choose tells the namespace of a project. What was chosen before it had a remote counts on.
// Where its identities are mapped to different ones, the error names two of them. A remote that
// is not mapped does not count beside one that is.
func (m Mapping) Choose(p *Project) (Choice, error) {
	var found []Choice
	for _, id := range p.all() {
		if ns := m.Projects[id]; ns != "" {
			found = append(found, Choice{id, ns})
		}
	}
	for _, other := range found[min(1, len(found)):] {
		if other.Namespace != found[0].Namespace {
			return Choice{}, memory.Errorf(memory.CodeConflict, "%s is project %s, whose namespace is %s, and project %s, whose namespace is %s",
				p.Top, found[0].ID, found[0].Namespace, other.ID, other.Namespace).
				WithHint("`memctl project use NAMESPACE` in that folder decides for all of them; -n NAMESPACE for one call")
		}
	}
	if len(found) > 0 {
		return found[0], nil
	}
	if ids := p.IDs(); len(ids) == 1 {
		return Choice{ID: ids[0]}, nil
	}
	return Choice{}, nil
}

// all are the identities under which a namespace may have been chosen.
func (p *Project) all() []ID {
	out := p.IDs()
	if p.Local != "" && !slices.Contains(out, p.Local) {
		out = append(out, p.Local)
	}
	return out
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
		if m.Projects[r.ID] == "" {
			return fmt.Sprintf("that is the one of %s; %s, the remote %s, has none of its own", c.ID, r.ID, r.Name)
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

// Use maps all identities of a project to a namespace. One that was moved is known by its new
// place from then on.
func (m Mapping) Use(p *Project, namespace string) {
	if p.here != "" && p.Local != p.here {
		if m.Projects[p.Local] != "" {
			m.Projects[p.here] = namespace
			delete(m.Projects, p.Local)
		}
		p.Local = p.here
	}
	for _, id := range p.IDs() {
		m.Projects[id] = namespace
	}
	if m.Projects[p.Local] != "" {
		m.Projects[p.Local] = namespace
	}
}

// Forget takes the identities of a project out, and reports whether there were any.
func (m Mapping) Forget(ids ...ID) bool {
	before := len(m.Projects)
	for _, id := range ids {
		delete(m.Projects, id)
	}
	return len(m.Projects) < before
}
