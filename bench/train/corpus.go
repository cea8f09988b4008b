package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// A corpus is a text file. "t<tab>text" is a passage, for the statistics of words;
// "p<tab>group<tab>a<tab>b" is a pair of texts that belong together, for the
// contrastive part; "w<tab>word" is a word of Chinese. A batch has pairs of one group, so that what distinguishes
// groups (language, register) is of no use there.
type corpusWriter struct {
	w       *bufio.Writer
	err     error
	texts   int
	bytes   int
	pairs   map[string]int
	current string // group prefix: the source
}

func (c *corpusWriter) text(s string) {
	if c.err == nil {
		_, c.err = fmt.Fprintf(c.w, "t\t%s\n", clean(s))
		c.texts++
		c.bytes += len(s)
	}
}

func (c *corpusWriter) pair(kind, a, b string) {
	a, b = clean(clip(a)), clean(clip(b))
	if c.err != nil || a == "" || b == "" || a == b {
		return
	}
	group := c.current + "/" + kind
	_, c.err = fmt.Fprintf(c.w, "p\t%s\t%s\t%s\n", group, a, b)
	c.pairs[group]++
}

// word writes a word that may be cut out of Chinese text.
func (c *corpusWriter) word(s string) {
	if c.err == nil {
		_, c.err = fmt.Fprintf(c.w, "w\t%s\n", clean(s))
	}
}

func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, s))
}

// maxPair bounds a text of a pair in bytes.
const maxPair = 600

func clip(s string) string {
	if len(s) <= maxPair {
		return s
	}
	n := maxPair
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// writeCorpus reads the sources in list under mirrors and writes the corpus to out, and
// a row about each source to report.
func writeCorpus(mirrors string, list []source, out, report io.Writer) error {
	c := &corpusWriter{w: bufio.NewWriterSize(out, 1<<20), pairs: map[string]int{}}
	for _, s := range list {
		c.current = shortName(s)
		texts, size := c.texts, c.bytes
		commits, err := c.source(mirrors, s)
		if err != nil {
			return fmt.Errorf("source %s: %w", s.repo, err)
		}
		name := s.repo
		if s.repoTo != "" {
			name += " + " + s.repoTo
		}
		if _, err := fmt.Fprintf(report, "| %s | %s | %s | %d | %.1f |\n", name, s.licence, commits, c.texts-texts, float64(c.bytes-size)/(1<<20)); err != nil {
			return err
		}
	}
	for _, group := range slices.Sorted(maps.Keys(c.pairs)) {
		log.Printf("pairs %-60s %d", group, c.pairs[group])
	}
	if c.err != nil {
		return c.err
	}
	return c.w.Flush()
}

// shortName groups the books, which are many and alike.
func shortName(s source) string {
	if s.format == book {
		return "books"
	}
	return s.repo[strings.IndexByte(s.repo, '/')+1:]
}

func (c *corpusWriter) source(mirrors string, s source) (commits string, err error) {
	r, err := openRepository(mirrors, s.repo, s.ref)
	if err != nil {
		return "", err
	}
	commits = r.commit[:12]
	if s.format == parallel {
		to := r
		if s.repoTo != "" {
			if to, err = openRepository(mirrors, s.repoTo, s.refTo); err != nil {
				return "", err
			}
			commits += " + " + to.commit[:12]
		}
		return commits, c.parallel(r, to, s)
	}
	if s.format == history {
		return commits, c.history(r)
	}
	files, err := r.files(matcher(s.files))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("no files")
	}
	for i, f := range files {
		if s.every > 0 && i%s.every != 0 || !bytes.Contains(f.data, []byte(s.mentions)) {
			continue
		}
		if err := c.file(s.format, f); err != nil {
			return "", fmt.Errorf("file %s: %w", f.path, err)
		}
	}
	return commits, nil
}

func (c *corpusWriter) file(kind format, f file) error {
	switch kind {
	case markdown:
		c.document(markdownBlocks(string(f.data)))
	case book:
		for _, name := range []string{"colophon", "imprint", "uncopyright", "titlepage", "loi.", "halftitle", "dedication", "endnotes"} {
			if strings.Contains(f.path, name) {
				return nil
			}
		}
		c.document(bookBlocks(string(f.data)))
	case catalogue:
		c.catalogue(string(f.data))
	case wordnet:
		c.wordnet(string(f.data))
	case tabbed:
		c.translations(string(f.data))
	case dialogues:
		list, err := conversations(f)
		if err != nil {
			return err
		}
		for _, turns := range list {
			c.conversation(turns)
		}
	case turns:
		c.turns(string(f.data))
	case captions:
		for line := range strings.SplitSeq(string(f.data), "\n") {
			if _, text, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				c.text(text)
				c.halves(text)
			}
		}
	case questions:
		return c.questions(f.data)
	case lexicon:
		c.lexicon(string(f.data))
	case bitext:
		c.chinese(string(f.data))
	case godoc:
		c.godoc(f)
	case meetings:
		return c.meetings(f.data)
	case intents:
		return c.intents(f)
	}
	return nil
}

// document makes texts of all blocks and pairs of headings with what follows, of
// neighbouring paragraphs and of neighbouring sentences.
func (c *corpusWriter) document(blocks []block) {
	var path [8]string
	for i, b := range blocks {
		c.text(b.text)
		if b.level > 0 {
			level := min(b.level, 7)
			path[level] = b.text
			clear(path[level+1:])
			body := ""
			for j := i + 1; j < len(blocks) && blocks[j].level == 0 && len(body) < maxPair; j++ {
				body += blocks[j].text + " "
			}
			heading := b.text
			if level > 2 && len(heading) < 20 {
				heading = path[level-1] + " " + heading
			}
			c.pair("heading", heading, body)
			continue
		}
		if i > 0 && blocks[i-1].level == 0 {
			c.pair("next", blocks[i-1].text, b.text)
		}
		c.neighbours(b.text)
	}
}

// neighbours pairs the sentences of a paragraph.
func (c *corpusWriter) neighbours(s string) {
	list := sentences(s)
	for i := 1; i < len(list); i++ {
		c.pair("sentence", list[i-1], list[i])
	}
}

// halves pairs the two halves of a text.
func (c *corpusWriter) halves(s string) {
	r := []rune(s)
	if len(r) >= 8 {
		c.pair("halves", string(r[:len(r)/2]), string(r[len(r)/2:]))
	}
}

func (c *corpusWriter) conversation(turns []string) {
	for i, t := range turns {
		c.text(t)
		if i > 0 {
			c.pair("turn", turns[i-1], t)
		}
		if i > 2 {
			c.pair("exchange", turns[i-3]+" "+turns[i-2], turns[i-1]+" "+t)
		}
		c.neighbours(t)
	}
}

// turns reads the TSV of MultiDoGO: conversation, turn, id, utterance, …
func (c *corpusWriter) turns(s string) {
	r := csv.NewReader(strings.NewReader(s))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	last := ""
	var list []string
	for {
		rec, err := r.Read()
		if err != nil {
			break
		}
		if len(rec) < 4 || rec[0] == "conversationId" {
			continue
		}
		if rec[0] != last {
			c.conversation(list)
			list, last = nil, rec[0]
		}
		list = append(list, rec[3])
	}
	c.conversation(list)
}

func (c *corpusWriter) questions(data []byte) error {
	for line := range strings.SplitSeq(string(data), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var qa struct{ Question, Answer string }
		if err := json.Unmarshal([]byte(line), &qa); err != nil {
			return err
		}
		answer, _, _ := strings.Cut(qa.Answer, "####")
		c.text(qa.Question)
		c.text(answer)
		c.pair("answer", qa.Question, answer)
		c.neighbours(qa.Question)
	}
	return nil
}

// chinese reads one sentence a line.
func (c *corpusWriter) chinese(s string) {
	last := ""
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		c.text(line)
		if last != "" {
			c.pair("next", last, line)
		}
		last = line
	}
}
