package main

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// block is a heading (level > 0) or a paragraph or list item (level 0) of a document.
type block struct {
	level int
	text  string
}

var (
	mdComment = regexp.MustCompile(`(?s)<!--.*?-->`)
	mdImage   = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	mdLink    = regexp.MustCompile(`\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])`)
	mdTag     = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)
	mdShort   = regexp.MustCompile(`\{\{[^}]*\}\}|\{%[^%]*%\}|\{#[^}]*\}|\{/\*.*?\*/\}`)
	mdItem    = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s+`)
	rstRole   = regexp.MustCompile("(:[a-z:]+:)?`+([^`<]*?)(\\s*<[^`>]*>)?`+_*")
	mdURL     = regexp.MustCompile(`https?://\S+`)
	spaces    = regexp.MustCompile(`\s+`)
)

// markdownBlocks cuts Markdown, or reStructuredText near enough, into blocks of
// plain text without code.
func markdownBlocks(s string) []block {
	s = strings.ReplaceAll(strings.TrimPrefix(s, "\ufeff"), "\r", "")
	var blocks []block
	if strings.HasPrefix(s, "---\n") {
		if head, rest, ok := strings.Cut(s[4:], "\n---"); ok {
			for line := range strings.SplitSeq(head, "\n") {
				if title, ok := strings.CutPrefix(line, "title:"); ok {
					blocks = append(blocks, block{1, strings.Trim(plain(title), `"' `)})
				}
			}
			s = rest
		}
	}
	s = mdComment.ReplaceAllString(s, "")
	var para []string
	flush := func() {
		if text := plain(strings.Join(para, " ")); hasLetters(text) {
			blocks = append(blocks, block{0, text})
		}
		para = para[:0]
	}
	fence := ""
	for line := range strings.SplitSeq(s, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			flush()
			fence = trimmed[:3]
		case trimmed == "", strings.HasPrefix(trimmed, ":::"), strings.HasPrefix(trimmed, "import "), strings.HasPrefix(trimmed, ".. "):
			flush()
		case strings.HasPrefix(line, "    ") && len(para) == 0 && !mdItem.MatchString(line), strings.HasPrefix(trimmed, "|--"), strings.HasPrefix(trimmed, "| --"):
			flush()
		case isUnderline(trimmed) && len(para) == 1:
			blocks = append(blocks, block{2, plain(para[0])})
			para = para[:0]
		case isUnderline(trimmed):
			flush()
		case strings.HasPrefix(trimmed, "#"):
			flush()
			text := strings.TrimLeft(trimmed, "#")
			if t := plain(text); hasLetters(t) {
				blocks = append(blocks, block{len(trimmed) - len(text), t})
			}
		case mdItem.MatchString(line):
			flush()
			para = append(para, mdItem.ReplaceAllString(line, ""))
		case strings.HasPrefix(trimmed, "|"):
			flush()
			para = append(para, strings.ReplaceAll(trimmed, "|", " "))
			flush()
		default:
			para = append(para, strings.TrimLeft(trimmed, "> "))
		}
	}
	flush()
	return blocks
}

// isUnderline reports whether a line underlines a heading.
func isUnderline(s string) bool {
	return len(s) >= 3 && strings.Trim(s, s[:1]) == "" && strings.Contains("=-~^", s[:1])
}

// plain drops what is not prose.
func plain(s string) string {
	s = mdImage.ReplaceAllString(s, "")
	s = mdLink.ReplaceAllString(s, "$1")
	s = mdShort.ReplaceAllString(s, "")
	s = mdTag.ReplaceAllString(s, "")
	s = rstRole.ReplaceAllString(s, "$2")
	s = mdURL.ReplaceAllString(s, "")
	s = strings.NewReplacer("**", "", "*", "", "`", "", "\u2060", "", "\u00ad", "").Replace(s)
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(s), " "))
}

func hasLetters(s string) bool {
	n := 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			if n++; n >= 2 || r > 0x2e80 {
				return true
			}
		}
	}
	return false
}

var (
	bookBlock = regexp.MustCompile(`(?s)<(p|h[1-6])\b[^>]*>(.*?)</(p|h[1-6])>`)
	anyTag    = regexp.MustCompile(`<[^>]*>`)
)

// bookBlocks returns the paragraphs and headings of a chapter.
func bookBlocks(s string) []block {
	var blocks []block
	for _, m := range bookBlock.FindAllStringSubmatch(s, -1) {
		text := html.UnescapeString(anyTag.ReplaceAllString(m[2], ""))
		text = strings.TrimSpace(spaces.ReplaceAllString(strings.ReplaceAll(text, "\u2060", ""), " "))
		if m[1] == "p" && hasLetters(text) {
			blocks = append(blocks, block{0, text})
		}
	}
	return blocks
}

// sentences cuts a text after full stops.
func sentences(s string) []string {
	var out []string
	start := 0
	for i, r := range s {
		end := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？', '；':
		case '.', '!', '?':
			if end < len(s) && s[end] != ' ' && s[end] != '"' {
				continue
			}
			if !strings.HasPrefix(s[end:], "”") && end-start < 12 {
				continue
			}
		default:
			continue
		}
		if hasLetters(s[start:end]) {
			out = append(out, strings.TrimSpace(s[start:end]))
			start = end
		}
	}
	if hasLetters(s[start:]) {
		out = append(out, strings.TrimSpace(s[start:]))
	}
	return out
}
