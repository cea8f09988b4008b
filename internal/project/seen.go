package project

import "slices"

// Seen is what is known of where somebody worked when it could not be told yet which namespace that has.
type Seen struct {
	Dir     string   `json:"dir,omitempty"`     // of the worktree, or the folder outside Git; "" is not known
	Remotes []Remote `json:"remotes,omitempty"` // of the project
	Local   ID       `json:"local,omitempty"`   // "" where it was no project, or is known by its folder alone
	// Unread says that the user's mapping could not be read, so that of what is gone only its remotes are known.
	Unread bool `json:"unread,omitempty"`
}

// See notes where somebody works: in a project, or in a folder that is in none.
func See(dir string, p *Project) Seen {
	if p == nil {
		return Seen{Dir: dir}
	}
	return Seen{Dir: p.Top, Remotes: p.Remotes, Local: p.Local}
}

// SeeUnread is See where the user's mapping cannot be read. That alone knows what has its identity by a place, its own or
// that of a remote on this machine: such a project is what lies at its folder later.
func SeeUnread(dir string, p *Project) Seen {
	s := See(dir, p)
	s.Unread, s.Local = p != nil, ""
	if p != nil && p.near != nil {
		s.Remotes = nil
	}
	if len(s.Remotes) > 0 {
		s.Local = s.Remotes[0].ID
	}
	return s
}

// Again is the project of what was seen, as it is now: there is what lies at its folder now, nil is
// none. What was removed, or made way for another project, is known by what was seen of it. nil is no project.
func (s Seen) Again(there *Project) *Project {
	if s.Local == "" || there != nil && s.same(there) {
		return there
	}
	return &Project{Top: s.Dir, Remotes: s.Remotes, Local: s.Local}
}

// same reports that a project is the one that was seen: by a remote, and by where it lies where it had none.
func (s Seen) same(p *Project) bool {
	if len(s.Remotes) == 0 {
		return p.Local == s.Local
	}
	return slices.ContainsFunc(p.Remotes, func(r Remote) bool {
		return slices.ContainsFunc(s.Remotes, func(was Remote) bool { return was.ID == r.ID })
	})
}
