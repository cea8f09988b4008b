package project

import (
	"bytes"
	"cmp"
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

// Choose tells the namespace of a project. Where its remotes are mapped to different ones, the
// error names two of them. A remote that is not mapped does not count beside one that is.
func (m Mapping) Choose(p *Project) (Choice, error) {
	var found []Choice
	for _, id := range p.IDs() {
		if ns := m.Projects[id]; ns != "" {
			found = append(found, Choice{id, ns})
		}
	}
	for _, other := range found[min(1, len(found)):] {
		if other.Namespace != found[0].Namespace {
			return Choice{}, memory.Errorf(memory.CodeConflict, "%s is project %s, whose namespace is %s, and project %s, whose namespace is %s",
				p.Top, found[0].ID, found[0].Namespace, other.ID, other.Namespace).
				WithHint("`memctl project use NAMESPACE` in that folder decides for all its remotes; -n NAMESPACE for one call")
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

// Propose is the namespace for a project that has none: its owner and repository. It is an
// error where two remotes differ, or where that namespace is another project's.
func (m Mapping) Propose(p *Project) (Choice, error) {
	ids := p.IDs()
	if len(ids) > 1 {
		return Choice{}, memory.Errorf(memory.CodeConflict, "%s has remotes of two projects: %s and %s", p.Top, ids[0], ids[1]).
			WithHint("say which namespace it has: `memctl project use NAMESPACE`, for example `memctl project use %s`", proposed(ids[0]))
	}
	ns := proposed(ids[0])
	if ns == "" {
		return Choice{}, memory.Errorf(memory.CodeInvalid, "no namespace can be named after %s", ids[0]).
			WithHint("say which it has: `memctl project use NAMESPACE`")
	}
	for _, id := range slices.Sorted(maps.Keys(m.Projects)) {
		if m.Projects[id] == ns && id != ids[0] {
			return Choice{}, memory.Errorf(memory.CodeConflict, "the namespace %s would fit %s and is that of %s", ns, ids[0], id).
				WithHint("`memctl project use %s` shares it; `memctl project use OTHER` keeps them apart", ns)
		}
	}
	return Choice{ids[0], ns}, nil
}

func proposed(id ID) string {
	_, rest, _ := strings.Cut(string(id), "/")
	return memory.MakeName(strings.ReplaceAll(rest, "/", "-"))
}

// Use maps all identities of a project to a namespace.
func (m Mapping) Use(p *Project, namespace string) {
	for _, id := range p.IDs() {
		m.Projects[id] = namespace
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
