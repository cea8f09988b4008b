package verbs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mneme/internal/loader"
	"mneme/memory"
)

// importFailure is the error of an import that left something out.
func importFailure(s *loader.Summary) error {
	t := s.Totals()
	if n := s.Malformed + t.Rejected; n > 0 && s.DryRun {
		return memory.Errorf(memory.CodeInvalid, "%s cannot be imported", count(n, "item", "items")).
			WithHint("nothing was imported, this was a dry run; without --dry-run everything else is")
	} else if n > 0 {
		bad := memory.Errorf(memory.CodeInvalid, "%s could not be imported", count(n, "item", "items"))
		if t.Created+t.Duplicates+t.Updated == 0 {
			return bad.WithHint("nothing was imported; they were read as %s: correct them, or name the file's --format, and run it again", formatsOf(s))
		}
		return bad.WithHint("everything else was; correct them and run it again, nothing is imported twice")
	}
	if t.Conflicts > 0 {
		return memory.Errorf(memory.CodeConflict, "%s stood in conflict with what is there", count(t.Conflicts, "item", "items")).
			WithHint("each is named, with what it meets there; nothing of them was changed")
	}
	return nil
}

// formatsOf are the formats that the files of an import were read as.
func formatsOf(s *loader.Summary) string {
	if s.Format != "several" {
		return s.Format
	}
	var names []string
	for _, f := range s.Files {
		if !slices.Contains(names, f.Format) {
			names = append(names, f.Format)
		}
	}
	return strings.Join(names, " and ")
}

func printImport(a *app, s *loader.Summary) {
	for _, p := range s.Problems {
		a.printf("%s: %s: %s: %s\n", oneLine(p.File), oneLine(p.Where), p.Code, oneLine(p.Detail))
	}
	if more := s.Malformed + s.Totals().Conflicts + s.Totals().Rejected - len(s.Problems); more > 0 {
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
		printImported(a, s, c)
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

func printImported(a *app, s *loader.Summary, c *loader.Counts) {
	if s.DryRun {
		line := fmt.Sprintf("%s: would import %s", c.Namespace, count(c.Found-c.Duplicates-c.Updated-c.Conflicts-c.Forgotten, "memory", "memories"))
		for _, more := range []struct {
			n   int
			say string
		}{{c.Duplicates, "already there"}, {c.Updated, "to be updated"}, {c.Conflicts, "in conflict"}, {c.Forgotten, "forgotten here before"}, {c.Pruned, "to be forgotten"}} {
			if more.n > 0 {
				line += fmt.Sprintf(", %d %s", more.n, more.say)
			}
		}
		a.println(line)
		printLeft(a, c)
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
	if c.Forgotten > 0 {
		line += fmt.Sprintf(", %d forgotten here before", c.Forgotten)
	}
	if c.Pruned > 0 {
		line += fmt.Sprintf(", %d forgotten", c.Pruned)
	}
	a.println(line)
	printLeft(a, c)
}

// printLeft says what an import left as it is, and how that changes.
func printLeft(a *app, c *loader.Counts) {
	if c.Forgotten > 0 {
		a.printf("%s: %s forgotten here since the import before; --again brings back what was\n", c.Namespace, count(c.Forgotten, "memory was", "memories were"))
	}
	if c.Gone > 0 {
		a.printf("%s: %s no longer in the files; --prune forgets them\n", c.Namespace, count(c.Gone, "memory is", "memories are"))
	}
}
