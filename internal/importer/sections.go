package importer

import (
	"bytes"
	"strings"
)

// section is a part of a Markdown file that becomes one memory: what stands below
// one heading, up to the next.
type section struct {
	headings []string // the heading and those above it, outermost first
	above    []string // lines of those of them that do not stand in text, as # Title
	first    int      // its first line, 1-based
	last     int
	text     string
}

// softSection is where a long section is divided, between two blocks. A paragraph,
// list, table or fence stays whole, and so may be longer.
const softSection = 16 << 10

// maxTitle bounds the characters that are kept of a heading for the sections below it.
const maxTitle = 200

// splitSections divides Markdown at its headings: of ATX form (# Title), and
// underlined (setext). What looks like one inside a fence or an HTML comment is text.
// A heading without text of its own makes no section, but stands in the headings of
// those below it. Lines are counted from first on.
//
// It is linear in the file's size whatever stands there. A whole parser would know
// more of Markdown than is wanted, and takes quadratic time on nested lists.
func splitSections(text []byte, first int) []section {
	s := splitter{line: first}
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		s.take(string(bytes.TrimRight(line, "\r")))
		text = rest
	}
	s.end()
	return s.out
}

type splitter struct {
	out      []section
	headings []heading
	line     int // number of the line to come

	blocks    []block // of the section so far
	fence     string  // the marker that opened a fence; "" outside
	comment   bool    // inside an HTML comment
	inList    bool    // the last block is a list
	paragraph bool    // the last line belongs to a paragraph, which an underline makes a heading
}

type heading struct {
	level int
	title string // clean and bounded when it is read, since every section below repeats it
	line  string // the same as a line, as # Title
}

// block is what is not divided: lines first to last.
type block struct {
	first, last int
	lines       []string
	heading     bool
}

func (s *splitter) take(line string) {
	trimmed := strings.TrimLeft(line, " ")
	indent := len(line) - len(trimmed)
	switch {
	case s.fence != "":
		s.grow(line)
		if indent < 4 && closes(trimmed, s.fence) {
			s.fence = ""
		}
	case s.comment:
		s.grow(line)
		s.comment = !strings.Contains(line, "-->")
	case strings.TrimSpace(line) == "":
		s.blank(line)
	case indent < 4 && opens(trimmed) != "":
		s.fence = opens(trimmed)
		s.inside(line, indent)
	case indent < 4 && strings.HasPrefix(trimmed, "<!--"):
		s.comment = !strings.Contains(trimmed, "-->")
		s.inside(line, indent)
	case indent < 4 && atx(trimmed) > 0:
		s.heading(atx(trimmed), atxTitle(trimmed), line)
	case indent < 4 && s.paragraph && underline(trimmed) > 0:
		s.setext(underline(trimmed), line)
	case isItem(trimmed) && indent < 4:
		s.item(line)
	default:
		s.inside(line, indent)
		s.paragraph = !s.inList && indent < 4
	}
	s.line++
}

// inside adds a line to the block that it continues, or begins one. Below a list,
// lines belong to it while they are indented, or follow without a blank line.
func (s *splitter) inside(line string, indent int) {
	if n := len(s.blocks); n > 0 && !s.blocks[n-1].heading {
		last := s.blocks[n-1].lines
		open := strings.TrimSpace(last[len(last)-1]) != ""
		if open || s.inList && indent >= 2 {
			s.grow(line)
			s.paragraph = false
			return
		}
	}
	s.inList = false
	s.begin(line)
}

func (s *splitter) item(line string) {
	if n := len(s.blocks); n > 0 && s.inList {
		s.grow(line)
		return
	}
	if n := len(s.blocks); n > 0 && !s.blocks[n-1].heading && s.paragraph {
		s.grow(line) // its introduction stays with the list
	} else {
		s.begin(line)
	}
	s.inList, s.paragraph = true, false
}

func (s *splitter) begin(line string) {
	s.blocks = append(s.blocks, block{first: s.line, last: s.line, lines: []string{line}})
}

func (s *splitter) grow(line string) {
	if len(s.blocks) == 0 {
		s.begin(line)
		return
	}
	b := &s.blocks[len(s.blocks)-1]
	b.lines = append(b.lines, line)
	b.last = s.line
}

func (s *splitter) blank(line string) {
	s.paragraph = false
	if len(s.blocks) > 0 {
		s.grow(line)
	}
}

func (s *splitter) heading(level int, title, line string) {
	s.end()
	for n := len(s.headings); n > 0 && s.headings[n-1].level >= level; n = len(s.headings) {
		s.headings = s.headings[:n-1]
	}
	title = clean(title, maxTitle)
	s.headings = append(s.headings, heading{level, title, strings.Repeat("#", level) + " " + title})
	s.blocks = append(s.blocks, block{first: s.line, last: s.line, lines: []string{line}, heading: true})
	s.inList, s.paragraph = false, false
}

// setext makes a heading of the paragraph that is underlined.
func (s *splitter) setext(level int, line string) {
	n := len(s.blocks) - 1
	b := s.blocks[n]
	s.blocks = s.blocks[:n]
	at := s.line
	s.line = b.first
	s.heading(level, strings.TrimSpace(strings.Join(b.lines, " ")), "")
	s.line = at
	s.blocks[0] = block{first: b.first, last: at, lines: append(b.lines, line), heading: true}
}

// end closes the section that is being read.
func (s *splitter) end() {
	blocks := s.blocks
	s.blocks, s.fence, s.comment, s.inList = nil, "", false, false
	if len(blocks) == 0 || len(blocks) == 1 && blocks[0].heading {
		return
	}
	titles := make([]string, 0, len(s.headings))
	above := make([]string, 0, len(s.headings))
	for _, h := range s.headings {
		titles = append(titles, h.title)
		if h.title != "" {
			above = append(above, h.line)
		}
	}
	lead := above
	if n := len(s.headings); blocks[0].heading && s.headings[n-1].title != "" {
		lead = above[:len(above)-1] // its own heading stands in its first part
	}
	size, from := 0, 0
	for i := range blocks {
		n := 0
		for _, l := range blocks[i].lines {
			n += len(l) + 1
		}
		if size > 0 && size+n > softSection && !blocks[i-1].heading {
			s.section(titles, lead, blocks[from:i])
			size, from, lead = 0, i, above
		}
		size += n
	}
	s.section(titles, lead, blocks[from:])
}

func (s *splitter) section(titles, above []string, blocks []block) {
	var lines []string
	for _, b := range blocks {
		lines = append(lines, b.lines...)
	}
	last := blocks[len(blocks)-1].last
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
		last--
	}
	if text := strings.Join(lines, "\n"); strings.TrimSpace(text) != "" {
		s.out = append(s.out, section{headings: titles, above: above, first: blocks[0].first, last: last, text: text})
	}
}

// opens returns the marker of a fence that a line opens, "" if it opens none.
func opens(line string) string {
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		if n := len(line) - len(rest); n >= 3 && (c == "~" || !strings.Contains(rest, "`")) {
			return line[:n]
		}
	}
	return ""
}

func closes(line, fence string) bool {
	rest := strings.TrimLeft(line, fence[:1])
	return len(line)-len(rest) >= len(fence) && strings.TrimSpace(rest) == ""
}

// atx is the level of an ATX heading, 0 if a line is none.
func atx(line string) int {
	rest := strings.TrimLeft(line, "#")
	n := len(line) - len(rest)
	if n == 0 || n > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0
	}
	return n
}

func atxTitle(line string) string {
	title := strings.TrimSpace(strings.TrimLeft(line, "#"))
	if cut := strings.TrimRight(title, "#"); cut != title && (cut == "" || strings.HasSuffix(cut, " ")) {
		title = strings.TrimSpace(cut)
	}
	return title
}

// underline is the level of the heading that a line makes of what is above it.
func underline(line string) int {
	line = strings.TrimRight(line, " \t")
	switch {
	case strings.Trim(line, "=") == "":
		return 1
	case strings.Trim(line, "-") == "" && len(line) > 1:
		return 2
	}
	return 0
}

// isItem reports whether a line begins an item of a list.
func isItem(line string) bool {
	if len(line) > 1 && strings.IndexByte("-*+", line[0]) >= 0 && (line[1] == ' ' || line[1] == '\t') {
		return strings.Trim(line, "-* ") != "" // a rule is none
	}
	digits := strings.TrimLeft(line, "0123456789")
	n := len(line) - len(digits)
	return n > 0 && n < 10 && len(digits) > 1 && (digits[0] == '.' || digits[0] == ')') && (digits[1] == ' ' || digits[1] == '\t')
}
