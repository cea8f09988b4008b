package loader

import (
	"strings"

	"mneme/internal/importer"
	"mneme/memory"
)

// Summary is what an import did.
type Summary struct {
	Format     string    `json:"format"`
	DryRun     bool      `json:"dry_run,omitempty"`
	Namespaces []*Counts `json:"namespaces"`
	Files      []File    `json:"files,omitempty"`        // whose formats were found out
	Malformed  int       `json:"malformed"`              // items that could not be read
	Problems   []Problem `json:"problems,omitempty"`     // the first ones
	LeftOut    []*Skips  `json:"left_out,omitempty"`     // what is no memory, by reason
	Forget     []string  `json:"would_forget,omitempty"` // uris, of a dry run with --prune
}

// File says what a file was found to be, and by what.
type File struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Why    string `json:"why"`
}

// Skips counts what was left out for one reason, and names the first places.
type Skips struct {
	Why    string   `json:"why"`
	Count  int      `json:"count"`
	Places []string `json:"places"`
}

// maxPlaces is how many places are named for one reason.
const maxPlaces = 3

// Counts counts the items of one namespace.
type Counts struct {
	Namespace  string `json:"namespace"`
	Found      int    `json:"found"`
	Created    int    `json:"created"`
	Duplicates int    `json:"duplicates"`        // there already, and the same
	Updated    int    `json:"updated,omitempty"` // revised, because they had changed
	Conflicts  int    `json:"conflicts"`
	Rejected   int    `json:"rejected"`
	Forgotten  int    `json:"forgotten,omitempty"` // imported before, and forgotten here since
	Gone       int    `json:"gone,omitempty"`      // imported before, and no longer in their files
	Pruned     int    `json:"pruned,omitempty"`    // of these forgotten

	Graph *GraphCounts `json:"graph,omitempty"`
}

// GraphCounts counts what went into the knowledge graph.
type GraphCounts struct {
	Entities     int `json:"entities"`
	Relations    int `json:"relations"`
	Observations int `json:"observations"`
	Created      int `json:"created"` // of all of these; the others were there
}

func (c *Counts) graph() *GraphCounts {
	if c.Graph == nil {
		c.Graph = &GraphCounts{}
	}
	return c.Graph
}

// Problem names one item that was not imported.
type Problem struct {
	File   string      `json:"file"`
	Line   int         `json:"line"`
	Where  string      `json:"where"` // where the file says it stands: a line, a turn, an id
	Code   memory.Code `json:"code"`
	Detail string      `json:"detail"`
}

func (s *Summary) namespace(name string) *Counts {
	for _, c := range s.Namespaces {
		if c.Namespace == name {
			return c
		}
	}
	c := &Counts{Namespace: name}
	s.Namespaces = append(s.Namespaces, c)
	return c
}

// found notes what a file was found to be.
func (s *Summary) found(file, format, why string) {
	s.Files = append(s.Files, File{file, format, why})
	switch s.Format {
	case "", format:
		s.Format = format
	default:
		s.Format = "several"
	}
}

// skip counts what was left out.
func (s *Summary) skip(file string, skip *importer.Skip) {
	var at *Skips
	for _, l := range s.LeftOut {
		if l.Why == skip.Why {
			at = l
		}
	}
	if at == nil {
		if len(s.LeftOut) == maxProblems {
			skip.Why = "for other reasons"
			at = s.LeftOut[maxProblems-1]
			at.Why = skip.Why
		} else {
			at = &Skips{Why: skip.Why}
			s.LeftOut = append(s.LeftOut, at)
		}
	}
	at.Count++
	if len(at.Places) < maxPlaces {
		at.Places = append(at.Places, strings.TrimSpace(file+": "+skip.Where))
	}
}

func (s *Summary) problem(p Problem) {
	if len(s.Problems) < maxProblems {
		s.Problems = append(s.Problems, p)
	}
}

func (s *Summary) malformed(p Problem) {
	s.Malformed++
	s.problem(p)
}

// Totals adds up the counts of all namespaces; of graphs what was read counts as created.
func (s *Summary) Totals() Counts {
	var t Counts
	for _, c := range s.Namespaces {
		t.Found += c.Found
		t.Created += c.Created
		t.Duplicates += c.Duplicates
		t.Updated += c.Updated
		if c.Graph != nil {
			t.Created += c.Graph.Entities + c.Graph.Relations
		}
		t.Conflicts += c.Conflicts
		t.Rejected += c.Rejected
	}
	return t
}
