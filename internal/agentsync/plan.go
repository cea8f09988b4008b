package agentsync

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"mneme/memory"
)

// Plan says what each file of a host would become, without writing anything.
func (h Host) Plan(scope Scope, w Where, o Options, remove bool) ([]*Change, error) {
	if scope == Project && w.Project == "" {
		return nil, memory.Errorf(memory.CodeInvalid, "this folder is no project: the files in it are those for all of the user's work").WithHint("use --scope user, or go to the folder of a project")
	}
	if !h.Has(scope, w) {
		other := User
		if scope == User {
			other = Project
		}
		return nil, memory.Errorf(memory.CodeInvalid, "%s has no configuration of the scope %s that names servers", h.Title, scope).
			WithHint("use --scope %s", other)
	}
	var changes []*Change
	files := h.files(w, scope, o)
	if remove {
		slices.Reverse(files)
	}
	for _, f := range files {
		i := slices.IndexFunc(changes, func(c *Change) bool { return c.Path == f.path })
		if i < 0 {
			c, err := readFile(f.path, within(scope, w)...)
			if err != nil {
				return nil, err
			}
			c.After, c.bare, c.root = c.Before, c.Before, w.Home
			if scope == Project {
				c.root = w.Project
			}
			changes, i = append(changes, c), len(changes)
		}
		c := changes[i]
		var err error
		if remove {
			c.After, err = f.edit.take(c.After)
		} else {
			c.After, err = f.edit.put(c.After)
		}
		if err != nil {
			return nil, unreadable(f.path, err)
		}
		if c.Before != nil && c.Changed() && c.mode&0o200 == 0 {
			return nil, refused(f.path, "it is read-only")
		}
	}
	for _, f := range slices.Backward(h.files(w, scope, o)) {
		c := changes[slices.IndexFunc(changes, func(c *Change) bool { return c.Path == f.path })]
		if bare, err := f.edit.take(c.bare); err == nil {
			c.bare = bare
		}
	}
	return changes, nil
}

// within are the folders that files of a scope may lie in. What a project brings along must not
// lead out of it; links of a user are that user's own.
func within(scope Scope, w Where) []string {
	if scope == Project {
		return []string{w.Project}
	}
	return nil
}

// Recalls reports whether the host has hooks in a scope that put memories into prompts.
func (h Host) Recalls(scope Scope, w Where) bool {
	return !h.mute && slices.ContainsFunc(h.files(w, scope, Options{}), func(f file) bool { return f.hook })
}

// Named lists the namespaces that entries of Mneme named before changes.
func Named(changes []*Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, named(c.Before)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var entryNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"mcp",\s*"-n",\s*"([a-z0-9_-]+)"|` + // of a server
		` hook --agent \S+ --event \S+ -n ([a-z0-9_-]+)|const after = \["-n","([a-z0-9_-]+)"| hook commits -q -n ([a-z0-9_-]+)`)
})

// named lists the namespaces that the entries in a text name, as often as they do.
func named(text []byte) []string {
	var all []string
	for _, m := range entryNames().FindAllSubmatch(text, -1) {
		all = append(all, string(slices.Concat(m[1:]...)))
	}
	return all
}

func unreadable(path string, err error) error {
	return memory.Errorf(memory.CodeInvalid, "%s is left as it is: %w", path, err).
		WithHint("nothing was changed in any file; correct this one and run it again")
}

// State is what of Mneme a host has in one scope.
type State struct {
	Server bool     `json:"server"`
	Hooks  bool     `json:"hooks"`
	Files  []string `json:"files,omitempty"` // that have it
	// Namespaces are those that its entries name; those that name none work in the project's.
	Namespaces []string `json:"namespaces,omitempty"`
}

// look adds what a file of Mneme's edit has.
func (s *State) look(f file, text []byte) error {
	without, err := f.edit.take(text)
	if has, bad := f.edit.has(text); err != nil || bad != nil || !has {
		return cmp.Or(bad, err)
	}
	s.Files = append(s.Files, f.path)
	s.Hooks, s.Server = s.Hooks || f.hook, s.Server || !f.hook
	others := named(without) // by entries that others made, which are no business of integrate
	for _, ns := range named(text) {
		if i := slices.Index(others, ns); i >= 0 {
			others = slices.Delete(others, i, i+1)
		} else if !slices.Contains(s.Namespaces, ns) {
			s.Namespaces = append(s.Namespaces, ns)
		}
	}
	slices.Sort(s.Namespaces)
	return nil
}

// State looks into the files of a host. The error names the first that cannot be read.
func (h Host) State(scope Scope, w Where) (State, error) {
	var s State
	var failed error
	for _, f := range h.files(w, scope, Options{}) {
		c, err := readFile(f.path, within(scope, w)...)
		if err == nil {
			err = s.look(f, c.Before)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", f.path, err)
		}
	}
	s.Files = slices.Compact(s.Files)
	return s, failed
}
