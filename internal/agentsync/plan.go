package agentsync

import (
	"fmt"
	"regexp"
	"slices"

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
	entry := regexp.MustCompile(`"mcp",\s*"-n",\s*"([a-z0-9_-]+)"|` + // of a server
		` hook --agent \S+ --event \S+ -n ([a-z0-9_-]+)|const after = \["-n","([a-z0-9_-]+)"| hook commits -q -n ([a-z0-9_-]+)`)
	var all []string
	for _, c := range changes {
		for _, m := range entry.FindAllSubmatch(c.Before, -1) {
			all = append(all, string(slices.Concat(m[1:]...)))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
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
}

// State looks into the files of a host. The error names the first that cannot be read.
func (h Host) State(scope Scope, w Where) (State, error) {
	var s State
	var failed error
	for _, f := range h.files(w, scope, Options{}) {
		c, err := readFile(f.path, within(scope, w)...)
		if err == nil {
			var has bool
			if has, err = f.edit.has(c.Before); has {
				s.Files = append(s.Files, f.path)
				s.Hooks, s.Server = s.Hooks || f.hook, s.Server || !f.hook
			}
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", f.path, err)
		}
	}
	s.Files = slices.Compact(s.Files)
	return s, failed
}
