package text

import "strings"

// Lines returns the numbers, from 1, of the lines that s[start:end] begins and
// ends on. A newline belongs to the line it ends. Bounds outside s are moved in.
func Lines(s string, start, end int) (startLine, endLine int) {
	start = min(max(start, 0), len(s))
	end = min(max(end, start), len(s))
	startLine = 1 + strings.Count(s[:start], "\n")
	body := s[start:end]
	return startLine, startLine + strings.Count(strings.TrimSuffix(body, "\n"), "\n")
}
