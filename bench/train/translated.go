package main

import (
	"strconv"
	"strings"
)

// parallel reads two trees of Markdown, of which the second translates the first.
func (c *corpusWriter) parallel(from, to repository, s source) error {
	under := func(dir string) func(string) bool {
		return func(p string) bool {
			return strings.HasPrefix(p, dir) && fits("*.md", strings.TrimSuffix(p, "x"))
		}
	}
	other := func(p string) bool { return s.repoTo == "" && strings.HasPrefix(p, s.to) }
	originals, err := from.files(func(p string) bool { return under(s.from)(p) && !other(p) && !otherLanguage(p[len(s.from):]) })
	if err != nil {
		return err
	}
	translations, err := to.files(under(s.to))
	if err != nil {
		return err
	}
	byName := map[string][]block{}
	for _, f := range translations {
		blocks := markdownBlocks(string(f.data))
		byName[strings.TrimPrefix(f.path, s.to)] = blocks
		if isChinese(blocks) {
			c.document(blocks)
		}
	}
	for _, f := range originals {
		blocks := markdownBlocks(string(f.data))
		c.document(blocks)
		if t := byName[strings.TrimPrefix(f.path, s.from)]; isChinese(t) {
			c.align(blocks, t)
		}
	}
	return nil
}

// otherLanguage reports whether a path begins with a folder for a language.
func otherLanguage(p string) bool {
	dir, _, ok := strings.Cut(p, "/")
	return ok && (len(dir) == 2 || len(dir) > 3 && dir[2] == '-' && len(dir) <= 7)
}

func isChinese(blocks []block) bool {
	han, all := 0, 0
	for _, b := range blocks {
		for _, r := range b.text {
			all++
			if r >= 0x4e00 && r <= 0x9fff {
				han++
			}
		}
	}
	return 5*han > all && han > 20
}

// align pairs the blocks of a text and its translation where both have the same
// form: all of them, or section by section.
func (c *corpusWriter) align(a, b []block) {
	if sameForm(a, b) {
		for i := range a {
			c.pair("parallel", a[i].text, b[i].text)
		}
		return
	}
	x, y := sections(a), sections(b)
	if len(x) != len(y) {
		return
	}
	for i := range x {
		if sameForm(x[i], y[i]) {
			for j := range x[i] {
				c.pair("parallel", x[i][j].text, y[i][j].text)
			}
			continue
		}
		if len(x[i]) > 0 && len(y[i]) > 0 {
			c.pair("parallel", x[i][0].text, y[i][0].text)
		}
	}
}

func sameForm(a, b []block) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].level != b[i].level {
			return false
		}
	}
	return true
}

func sections(blocks []block) [][]block {
	var out [][]block
	start := 0
	for i, b := range blocks {
		if b.level > 0 && i > start {
			out = append(out, blocks[start:i])
			start = i
		}
	}
	return append(out, blocks[start:])
}

// catalogue reads a gettext file.
func (c *corpusWriter) catalogue(s string) {
	var id, str string
	var last string
	into := &id
	flush := func() {
		a, b := plain(id), plain(str)
		if hasLetters(a) && hasLetters(b) && !strings.HasPrefix(a, ">>>") {
			c.text(a)
			c.text(b)
			c.pair("parallel", a, b)
			if last != "" {
				c.pair("next", last, b)
			}
			c.neighbours(a)
			c.neighbours(b)
			last = b
		}
		id, str = "", ""
	}
	for line := range strings.SplitSeq(s, "\n") {
		switch {
		case strings.HasPrefix(line, "msgid "):
			flush()
			into = &id
		case strings.HasPrefix(line, "msgstr "):
			into = &str
		case !strings.HasPrefix(line, `"`):
			continue
		}
		if at := strings.IndexByte(line, '"'); at >= 0 {
			if part, err := strconv.Unquote(strings.TrimSpace(line[at:])); err == nil {
				*into += part
			}
		}
	}
	flush()
}

// wordnet reads one YAML file of synsets, as far as its plain layout goes: members,
// definitions and examples.
func (c *corpusWriter) wordnet(s string) {
	var members, definitions, examples []string
	var list *[]string
	flush := func() {
		names := strings.Join(members, ", ")
		for i, d := range definitions {
			c.text(names + ": " + d)
			if i == 0 {
				for _, m := range members {
					c.pair("definition", m, d)
				}
			}
			for _, e := range examples {
				c.pair("example", e, names+" "+d)
			}
		}
		for i, e := range examples {
			c.text(e)
			if i > 0 {
				c.pair("synonyms", examples[i-1], e)
			}
		}
		for i := 1; i < len(members); i++ {
			c.pair("synonyms", members[i-1], members[i])
		}
		members, definitions, examples = nil, nil, nil
	}
	for line := range strings.SplitSeq(s, "\n") {
		switch {
		case len(line) > 0 && line[0] != ' ':
			flush()
			list = nil
		case strings.HasPrefix(line, "  definition:"):
			list = &definitions
		case strings.HasPrefix(line, "  example:"):
			list = &examples
		case strings.HasPrefix(line, "  members:"):
			list = &members
		case strings.HasPrefix(line, "  - ") && list != nil:
			*list = append(*list, strings.Trim(line[4:], `'"`))
		case strings.HasPrefix(line, "    ") && list != nil && len(*list) > 0:
			(*list)[len(*list)-1] += " " + strings.Trim(line[4:], `'"`)
		default:
			list = nil
		}
	}
	flush()
}

// translations reads sentences with their translations, one a line. Two translations
// of one sentence say the same in other words.
func (c *corpusWriter) translations(s string) {
	last := map[string]string{}
	for line := range strings.SplitSeq(s, "\n") {
		parts := strings.Split(strings.TrimRight(line, "\r"), "\t")
		if len(parts) < 2 {
			continue
		}
		a, b := parts[0], parts[1]
		c.text(a)
		c.text(b)
		c.pair("parallel", a, b)
		for _, side := range [][2]string{{a, b}, {b, a}} {
			if other := last[side[0]]; other != "" {
				c.pair("paraphrase", other, side[1])
			}
			last[side[0]] = side[1]
		}
	}
}

// lexicon reads the words of the Chinese Open Wordnet; those of one synset mean the
// same.
func (c *corpusWriter) lexicon(s string) {
	synset, last := "", ""
	for line := range strings.SplitSeq(s, "\n") {
		parts := strings.Split(strings.TrimRight(line, "\r"), "\t")
		if len(parts) != 3 || parts[1] != "cmn:lemma" {
			continue
		}
		word := strings.NewReplacer("+", "", " ", "").Replace(parts[2])
		c.word(word)
		if parts[0] == synset {
			c.pair("synonyms", last, word)
		}
		synset, last = parts[0], word
	}
}
