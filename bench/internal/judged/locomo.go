package judged

import (
	"errors"
	"io"
	"os"
	"strconv"

	"mneme/internal/importer"
)

// loadLocomo reads a file of LoCoMo (Maharana et al., 2024) with the product's
// own importer: one namespace for each conversation, one capture for each turn.
func loadLocomo(path string) (*Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	set := &Set{}
	if err := set.locomoTurns(f); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	questions, counts, err := importer.Questions(f)
	if err != nil {
		return nil, err
	}
	set.Counts.Questions, set.Counts.NoEvidence = counts.Questions, counts.NoEvidence
	set.Counts.Malformed, set.Counts.Missing = counts.Malformed, counts.Missing
	at := map[string]int{}
	for i, ns := range set.Namespaces {
		at[ns.Name] = i
	}
	for _, q := range questions {
		// A category of 5 marks a question that the conversation cannot answer.
		out := Question{Text: q.Question, Category: strconv.Itoa(q.Category), Apart: q.Category == 5}
		for _, dia := range q.Evidence {
			out.Evidence = append(out.Evidence, "locomo/"+q.Sample+"/"+dia)
		}
		if i, ok := at[importer.MakeName(q.Sample)]; ok {
			set.Namespaces[i].Questions = append(set.Namespaces[i].Questions, out)
		}
	}
	return set, nil
}

func (s *Set) locomoTurns(r io.Reader) error {
	source, err := importer.Open("locomo", r, importer.Options{})
	if err != nil {
		return err
	}
	for {
		item, err := source.Next()
		var bad *importer.ItemError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			s.Counts.Unread++
			continue
		case err != nil:
			return err
		}
		if n := len(s.Namespaces); n == 0 || s.Namespaces[n-1].Name != item.Namespace {
			s.Namespaces = append(s.Namespaces, Namespace{Name: item.Namespace})
		}
		ns := &s.Namespaces[len(s.Namespaces)-1]
		ns.Captures = append(ns.Captures, item.Capture)
	}
}
