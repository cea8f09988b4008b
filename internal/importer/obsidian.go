package importer

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

var (
	// wikilink is [[note]], [[note#heading]], [[note|shown]] and ![[embedded]].
	wikilink = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`!?\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]`)
	})
	// obsidianTag is #tag behind a space: letters, digits, _ - and / for nested ones,
	// at least one of them no digit.
	obsidianTag = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s(])#([\p{L}\p{N}_/-]*[\p{L}_/-][\p{L}\p{N}_/-]*)`)
	})
	inlineCode = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`[^`\n]*`") })
)

const maxLinks = 64

// obsidianMarks finds the tags and the links of a text, outside of code. The text
// keeps them.
func obsidianMarks(text string) (tags, links []string) {
	text = inlineCode().ReplaceAllString(withoutFences(text), "")
	for _, m := range obsidianTag().FindAllStringSubmatch(text, 256) {
		if !slices.Contains(tags, m[1]) {
			tags = append(tags, strings.Trim(m[1], "/"))
		}
	}
	for _, m := range wikilink().FindAllStringSubmatch(text, 4096) {
		if l := strings.TrimSpace(m[1]); !slices.Contains(links, l) && len(links) < maxLinks {
			links = append(links, l)
		}
	}
	return tags, links
}

func withoutFences(text string) string {
	var out []string
	fence := ""
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case fence != "":
			if closes(trimmed, fence) {
				fence = ""
			}
		case opens(trimmed) != "":
			fence = opens(trimmed)
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
