package text

import "strings"

// AnalyzeTag returns the terms of a tag without repeats: the folded tag as a whole
// first, then its words.
func AnalyzeTag(s string) []string {
	var out newTerms
	out.add(wholeTerm(s))
	out.add(IndexTerms(s))
	return out.terms
}

// wholeTerm returns s folded, as the only term, or nothing if it is blank.
func wholeTerm(s string) []string {
	whole := Fold(strings.TrimSpace(s))
	if len(whole) > maxTerm {
		whole = cutTerm(whole)
	}
	if whole == "" {
		return nil
	}
	return []string{whole}
}

// AnalyzeURI returns the terms of a record's address without repeats: each path
// segment folded and whole, then the words of the segments. The scheme is left
// out. Bad percent escapes do no harm.
func AnalyzeURI(s string) []string {
	if k := strings.Index(s, "://"); k >= 0 {
		s = s[k+len("://"):]
	}
	var out newTerms
	segments := strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '?' || r == '#' || r == '&' })
	for _, segment := range segments {
		out.add(wholeTerm(segment))
	}
	for _, segment := range segments {
		out.add(IndexTerms(segment))
	}
	return out.terms
}

// newTerms is terms without repeats, in the order in which they came.
type newTerms struct {
	terms []string
	seen  map[string]bool
}

func (n *newTerms) add(terms []string) {
	if n.seen == nil {
		n.seen = make(map[string]bool, len(terms))
	}
	for _, t := range terms {
		if !n.seen[t] {
			n.seen[t] = true
			n.terms = append(n.terms, t)
		}
	}
}
