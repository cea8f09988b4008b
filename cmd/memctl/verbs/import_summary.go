package verbs

import (
	"fmt"
	"strconv"
	"strings"

	"mneme/internal/importer"
	"mneme/memory"
)

// importSummary is what an import did.
type importSummary struct {
	Format     string          `json:"format"`
	DryRun     bool            `json:"dry_run,omitempty"`
	Namespaces []*importCounts `json:"namespaces"`
	Files      []importFile    `json:"files,omitempty"`        // whose formats were found out
	Malformed  int             `json:"malformed"`              // items that could not be read
	Problems   []importProblem `json:"problems,omitempty"`     // the first ones
	LeftOut    []*importSkips  `json:"left_out,omitempty"`     // what is no memory, by reason
	Forget     []string        `json:"would_forget,omitempty"` // uris, of a dry run with --prune
}

// importFile says what a file was found to be, and by what.
type importFile struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Why    string `json:"why"`
}

// importSkips counts what was left out for one reason, and names the first places.
type importSkips struct {
	Why    string   `json:"why"`
	Count  int      `json:"count"`
	Places []string `json:"places"`
}

// importPlaces is how many places are named for one reason.
const importPlaces = 3

// importCounts counts the items of one namespace.
type importCounts struct {
	Namespace  string `json:"namespace"`
	Found      int    `json:"found"`
	Created    int    `json:"created"`
	Duplicates int    `json:"duplicates"`        // there already, and the same
	Updated    int    `json:"updated,omitempty"` // revised, because they had changed
	Conflicts  int    `json:"conflicts"`
	Rejected   int    `json:"rejected"`
	Gone       int    `json:"gone,omitempty"`   // imported before, and no longer in their files
	Pruned     int    `json:"pruned,omitempty"` // of these forgotten

	Graph *importGraphCounts `json:"graph,omitempty"`
}

// importGraphCounts counts what went into the knowledge graph.
type importGraphCounts struct {
	Entities     int `json:"entities"`
	Relations    int `json:"relations"`
	Observations int `json:"observations"`
	Created      int `json:"created"` // of all of these; the others were there
}

func (c *importCounts) graph() *importGraphCounts {
	if c.Graph == nil {
		c.Graph = &importGraphCounts{}
	}
	return c.Graph
}

// importProblem names one item that was not imported.
type importProblem struct {
	File   string      `json:"file"`
	Line   int         `json:"line"`
	Where  string      `json:"where"` // where the file says it stands: a line, a turn, an id
	Code   memory.Code `json:"code"`
	Detail string      `json:"detail"`
}

func (s *importSummary) namespace(name string) *importCounts {
	for _, c := range s.Namespaces {
		if c.Namespace == name {
			return c
		}
	}
	c := &importCounts{Namespace: name}
	s.Namespaces = append(s.Namespaces, c)
	return c
}

// found notes what a file was found to be.
func (s *importSummary) found(file, format, why string) {
	s.Files = append(s.Files, importFile{file, format, why})
	switch s.Format {
	case "", format:
		s.Format = format
	default:
		s.Format = "several"
	}
}

// skip counts what was left out.
func (s *importSummary) skip(file string, skip *importer.Skip) {
	var at *importSkips
	for _, l := range s.LeftOut {
		if l.Why == skip.Why {
			at = l
		}
	}
	if at == nil {
		if len(s.LeftOut) == importProblems {
			skip.Why = "for other reasons"
			at = s.LeftOut[importProblems-1]
			at.Why = skip.Why
		} else {
			at = &importSkips{Why: skip.Why}
			s.LeftOut = append(s.LeftOut, at)
		}
	}
	at.Count++
	if len(at.Places) < importPlaces {
		at.Places = append(at.Places, strings.TrimSpace(file+": "+skip.Where))
	}
}

func (s *importSummary) problem(p importProblem) {
	if len(s.Problems) < importProblems {
		s.Problems = append(s.Problems, p)
	}
}

func (s *importSummary) malformed(p importProblem) {
	s.Malformed++
	s.problem(p)
}

func (s *importSummary) totals() importCounts {
	var t importCounts
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

// failure is the error of an import that left something out.
func (s *importSummary) failure() error {
	t := s.totals()
	if n := s.Malformed + t.Rejected; n > 0 && s.DryRun {
		return memory.Errorf(memory.CodeInvalid, "%s cannot be imported", count(n, "item", "items")).
			WithHint("nothing was imported, this was a dry run; without --dry-run everything else is")
	} else if n > 0 {
		bad := memory.Errorf(memory.CodeInvalid, "%s could not be imported", count(n, "item", "items"))
		if t.Created+t.Duplicates+t.Updated == 0 {
			return bad.WithHint("nothing was imported; correct them, or name the file's --format, and run it again")
		}
		return bad.WithHint("everything else was; correct them and run it again, nothing is imported twice")
	}
	if t.Conflicts > 0 {
		return memory.Errorf(memory.CodeConflict, "%s stood in conflict with what is there", count(t.Conflicts, "item", "items")).
			WithHint("each is named, with what it meets there; nothing of them was changed")
	}
	return nil
}

func (s *importSummary) print(a *app) {
	for _, p := range s.Problems {
		a.printf("%s: %s: %s: %s\n", oneLine(p.File), oneLine(p.Where), p.Code, oneLine(p.Detail))
	}
	if more := s.Malformed + s.totals().Conflicts + s.totals().Rejected - len(s.Problems); more > 0 {
		a.printf("and %d more\n", more)
	}
	for _, l := range s.LeftOut {
		places := strings.Join(l.Places, ", ")
		if l.Count > len(l.Places) {
			places += ", …"
		}
		a.printf("left out %d: %s (%s)\n", l.Count, oneLine(l.Why), oneLine(places))
	}
	for _, uri := range s.Forget {
		a.printf("would forget %s\n", oneLine(uri))
	}
	for _, c := range s.Namespaces {
		s.printCounts(a, c)
	}
	if len(s.Namespaces) == 0 {
		a.println("nothing to import")
	}
	if s.Malformed > 0 {
		a.println(strconv.Itoa(s.Malformed) + " malformed")
	}
	if len(s.Namespaces) == 0 {
		return
	}
	if s.DryRun {
		a.next("the same without --dry-run")
		return
	}
	if c := s.Namespaces[0]; c.Graph != nil && c.Found == 0 {
		a.println("agents reach it with the tools of the MCP profile full or graph; memctl search does not look there")
		a.next("memctl graph list -n %s", c.Namespace)
		return
	}
	a.next("memctl search -n %s \"…\"", s.Namespaces[0].Namespace)
}

func (s *importSummary) printCounts(a *app, c *importCounts) {
	if s.DryRun {
		line := fmt.Sprintf("%s: would import %s", c.Namespace, count(c.Found-c.Duplicates-c.Updated-c.Conflicts, "memory", "memories"))
		for _, more := range []struct {
			n   int
			say string
		}{{c.Duplicates, "already there"}, {c.Updated, "to be updated"}, {c.Conflicts, "in conflict"}, {c.Pruned, "to be forgotten"}} {
			if more.n > 0 {
				line += fmt.Sprintf(", %d %s", more.n, more.say)
			}
		}
		a.println(line)
		s.printGone(a, c)
		return
	}
	if g := c.Graph; g != nil {
		a.printf("%s: read %s, %s and %s into the graph, %d of them new\n", c.Namespace, count(g.Entities, "entity", "entities"),
			count(g.Relations, "relation", "relations"), count(g.Observations, "observation", "observations"), g.Created)
		if c.Found == 0 {
			return
		}
	}
	line := fmt.Sprintf("%s: %d imported, %d already there, %d in conflict, %d rejected", c.Namespace, c.Created, c.Duplicates, c.Conflicts, c.Rejected)
	if c.Updated > 0 {
		line += fmt.Sprintf(", %d updated", c.Updated)
	}
	if c.Pruned > 0 {
		line += fmt.Sprintf(", %d forgotten", c.Pruned)
	}
	a.println(line)
	s.printGone(a, c)
}

func (s *importSummary) printGone(a *app, c *importCounts) {
	if c.Gone > 0 {
		a.printf("%s: %s no longer in the files; --prune forgets them\n", c.Namespace, count(c.Gone, "memory is", "memories are"))
	}
}
