package main

import (
	"strconv"

	"mneme/memory"
)

// importSummary is what an import did.
type importSummary struct {
	Format     string          `json:"format"`
	DryRun     bool            `json:"dry_run,omitempty"`
	Namespaces []*importCounts `json:"namespaces"`
	Malformed  int             `json:"malformed"`          // items that could not be read
	Problems   []importProblem `json:"problems,omitempty"` // the first ones
}

// importCounts counts the items of one namespace.
type importCounts struct {
	Namespace  string `json:"namespace"`
	Found      int    `json:"found"`
	Created    int    `json:"created"`
	Duplicates int    `json:"duplicates"`
	Conflicts  int    `json:"conflicts"`
	Rejected   int    `json:"rejected"`
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
		if t.Created+t.Duplicates == 0 {
			return bad.WithHint("nothing was imported; correct them, or name the file's --format, and run it again")
		}
		return bad.WithHint("everything else was; correct them and run it again, nothing is imported twice")
	}
	if t.Conflicts > 0 {
		return memory.Errorf(memory.CodeConflict, "%s stood in conflict with what is there", count(t.Conflicts, "item", "items")).
			WithHint("the same id or uri was used before for something else")
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
	for _, c := range s.Namespaces {
		if s.DryRun {
			a.printf("%s: would import %s\n", c.Namespace, count(c.Found, "memory", "memories"))
			continue
		}
		a.printf("%s: %d imported, %d already there, %d in conflict, %d rejected\n", c.Namespace, c.Created, c.Duplicates, c.Conflicts, c.Rejected)
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
	a.next("memctl search -n %s \"…\"", s.Namespaces[0].Namespace)
}
