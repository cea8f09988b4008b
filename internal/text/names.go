package text

import "strings"

// AnalyzeTag returns the terms of a tag without repeats: the folded tag as a whole
// first, then its words.
func AnalyzeTag(s string) []string {
	return appendNew(wholeTerm(s), Terms(s))
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
	var terms []string
	segments := strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '?' || r == '#' || r == '&' })
	for _, segment := range segments {
		terms = appendNew(terms, wholeTerm(segment))
	}
	for _, segment := range segments {
		terms = appendNew(terms, Terms(segment))
	}
	return terms
}

// appendNew appends the terms that are not there yet.
func appendNew(terms, more []string) []string {
	seen := make(map[string]bool, len(terms)+len(more))
	for _, t := range terms {
		seen[t] = true
	}
	for _, t := range more {
		if !seen[t] {
			seen[t] = true
			terms = append(terms, t)
		}
	}
	return terms
}
