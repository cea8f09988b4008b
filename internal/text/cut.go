package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A cut recognises names of one form and gives the parts of them that people ask for
// and that the analyzer does not give. name is src[from:to]: signs of joints, letters
// and digits, with a letter or a digit at both ends.
//
// Beginnings are given only where they are not beginnings of a term: those of paths,
// hashes, ULIDs and addresses are found in the vocabulary, at the time of the query.
var cuts = [...]func(c *cutter, from, to int){
	(*cutter).option,
	(*cutter).hidden,
	(*cutter).address,
	(*cutter).versions,
}

// Limits of what one name gives.
const (
	maxTails      = 4 // of a path
	maxComponents = 4 // of a version
)

// stretch cuts the names in src[i:end], which has no white space in it.
func (c *cutter) stretch(i, end int) {
	for i < end && !c.done {
		from := i
		for i < end {
			n := c.nameLen(i, end)
			if n == 0 {
				break
			}
			i += n
		}
		to := i
		if i == from {
			_, n := utf8.DecodeRuneInString(c.src[i:end])
			i += n
			continue
		}
		for from < to && classes[c.src[from]] == classJoint {
			from++
		}
		for to > from && classes[c.src[to-1]] == classJoint {
			to--
		}
		for _, cut := range cuts {
			if from < to {
				cut(c, from, to)
			}
		}
	}
}

// nameLen is the length of the character at i if a name may hold it, else 0.
func (c *cutter) nameLen(i, end int) int {
	switch classes[c.src[i]] {
	case classLetter, classDigit, classJoint:
		return 1
	case classWide:
		r, n := utf8.DecodeRuneInString(c.src[i:end])
		if !isGram(r) && (unicode.IsLetter(r) || unicode.IsMark(r)) {
			return n
		}
	}
	return 0
}

// name gives a part of the text as a term.
func (c *cutter) name(from, to int) {
	if to-from > maxTerm {
		return
	}
	s := c.src[from:to]
	if strings.IndexByte(s, '\\') >= 0 {
		s = strings.ReplaceAll(s, `\`, "/")
	}
	c.add(Fold(s), from, to)
}

// option gives the name of an option in one piece, no-verify for --no-verify. Other
// words with hyphens are mostly prose: in one piece they count too much in a query.
func (c *cutter) option(from, to int) {
	s := c.src[from:to]
	if from == 0 || c.src[from-1] != '-' || strings.IndexByte(s, '-') < 0 || len(s) > maxOption {
		return
	}
	for i := range len(s) {
		if !isAlpha(s[i]) && (s[i] != '-' || s[i-1] == '-') {
			return
		}
	}
	c.name(from, to)
}

// maxOption is the longest name of an option, in bytes.
const maxOption = 48

// hidden gives names with their leading point: .NET, .gitignore.
func (c *cutter) hidden(from, to int) {
	if from == 0 || c.src[from-1] != '.' || to-from > maxOption || !isLetters(c.src[from:to]) {
		return
	}
	if from == 1 || strings.IndexByte(" \t\r\n([{'\"`/", c.src[from-2]) >= 0 {
		c.name(from-1, to)
	}
}

// address takes addresses, paths and dotted names apart, down to the tails of a path.
func (c *cutter) address(from, to int) {
	s := c.src[from:to]
	if k := strings.Index(s, "://"); k >= 0 {
		from += k + len("://")
		host := from
		for host < to && c.src[host] != '/' {
			host++
		}
		if host == to {
			c.host(from, host, false)
			return
		}
		c.host(from, host, true)
		if c.isTail(c.src[host+1 : to]) {
			c.name(host+1, to)
		}
		c.path(host+1, to)
		return
	}
	if k := strings.IndexByte(s, '@'); k > 0 {
		if strings.IndexByte(s[:k], '/') < 0 && k+1 < len(s) && isAlpha(s[k+1]) {
			if strings.ContainsAny(s[:k], "._-") {
				c.name(from, from+k)
			}
			c.host(from+k+1, to, true)
		}
		return
	}
	c.path(from, to)
}

// host gives the name of a host without user and port, unless that is the whole which
// the analyzer has given, and the domains that it lies in.
func (c *cutter) host(from, to int, part bool) {
	if k := strings.LastIndexByte(c.src[from:to], '@'); k >= 0 {
		from, part = from+k+1, true
	}
	if k := strings.IndexByte(c.src[from:to], ':'); k >= 0 {
		to, part = from+k, true
	}
	last := strings.LastIndexByte(c.src[from:to], '.')
	if last <= 0 || from+last+1 == to || isDigit(c.src[from+last+1]) {
		return
	}
	if part {
		c.name(from, to)
	}
	c.tails(from, to, '.')
}

// path gives a path without the line that is named behind it, its tails, and a name in
// snake case without the extension; a dotted name is a path too.
func (c *cutter) path(from, to int) {
	if end := c.line(from, to); end < to {
		to = end
		if s := c.src[from:to]; strings.ContainsAny(s, `./\`) && strings.IndexFunc(s, unicode.IsLetter) >= 0 {
			c.name(from, to)
		}
	}
	s := c.src[from:to]
	last := from + strings.LastIndexAny(s, `/\`) + 1
	if dot := strings.LastIndexByte(c.src[last:to], '.'); dot > 0 && strings.IndexByte(c.src[last:last+dot], '_') >= 0 {
		c.name(last, last+dot)
	}
	switch {
	case last > from:
		c.tails(from, to, '/')
	case strings.Contains(s, "::"):
		c.tails(from, to, ':')
	case strings.Count(s, ".") > 1:
		c.tails(from, to, '.')
	}
}

// line returns where the numbers of a line and a column begin that stand behind a
// name, file.go:42:7, else to.
func (c *cutter) line(from, to int) int {
	end := to
	for range 2 {
		i := end
		for i > from && isDigit(c.src[i-1]) {
			i--
		}
		if i == end || i-1 <= from || c.src[i-1] != ':' {
			break
		}
		end = i - 1
	}
	return end
}

// tails gives the last parts of a name that the sign joins, by one part, two parts, and
// so on. Those in one word the analyzer has given.
func (c *cutter) tails(from, to int, sign byte) {
	n := 0
	for i := to - 1; i > from && n < maxTails; i-- {
		b := c.src[i]
		if b == '\\' {
			b = '/'
		}
		if b != sign {
			continue
		}
		if tail := c.src[i+1 : to]; c.isTail(tail) {
			c.name(i+1, to)
			n++
		}
	}
}

// isTail reports whether a tail is a name by itself.
func (c *cutter) isTail(tail string) bool {
	if tail == "" || len(tail) > maxTerm || !isAlpha(tail[0]) && tail[0] < utf8.RuneSelf {
		return false
	}
	return strings.ContainsAny(tail, `._/\:-`)
}

// versions gives the numbers with points in a name, each by its beginnings: v1.29.4 as
// 1.29.4 and 1.29, go1.23 as 1.23. The addresses of hosts are no versions.
func (c *cutter) versions(from, to int) {
	for i := from; i < to; {
		if !isDigit(c.src[i]) {
			i++
			continue
		}
		var ends [maxComponents]int
		n, start := 0, i
		for i < to && isDigit(c.src[i]) {
			for i < to && isDigit(c.src[i]) {
				i++
			}
			if n < maxComponents {
				ends[n] = i
			}
			n++
			if i+1 < to && c.src[i] == '.' && isDigit(c.src[i+1]) {
				i++
			}
		}
		glued := start > from && classes[c.src[start-1]] != classJoint
		if n < 2 || n > maxComponents || n == maxComponents && !glued {
			continue
		}
		whole := i < to && classes[c.src[i]]&(classLetter|classWide) == 0 || i == to
		for k := range n {
			if k == 0 && glued || k == n-1 && !glued && whole {
				continue // the analyzer has given it
			}
			if end := ends[k]; end-start <= maxVersion {
				c.add(lookup(c.src[start:end]).term, start, end)
			}
		}
	}
}

// maxVersion is the longest version, in bytes.
const maxVersion = 32
