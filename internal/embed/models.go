package embed

import (
	"regexp"
	"strings"
)

// Prefixes are put before texts by purpose.
type Prefixes struct {
	Document string
	Query    string
}

// The prefixes below are those of the model cards. What a user configures wins.
const (
	searchPassages = "Represent this sentence for searching relevant passages: "
	webSearchTask  = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)

// prefixRule applies to models whose bare name matches; the first match counts.
type prefixRule struct {
	pattern *regexp.Regexp
	Prefixes
}

// prefixRules returns the table of asymmetric models, special cases first.
func prefixRules() []prefixRule {
	rule := func(pattern, document, query string) prefixRule {
		return prefixRule{regexp.MustCompile(pattern), Prefixes{document, query}}
	}
	return []prefixRule{
		rule(`^nomic-embed-text|^nomic-embed$`, "search_document: ", "search_query: "),
		// The instruct variants of E5 take a task before the query and nothing before documents.
		rule(`\be5-.*instruct`, "", "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "),
		rule(`(^|-)e5(-|$)`, "passage: ", "query: "),
		rule(`^bge-m3`, "", ""), // trained without instruction
		rule(`^bge-.*zh`, "", "为这个句子生成表示以用于检索相关文章："),
		rule(`^bge-`, "", searchPassages),
		rule(`^qwen3-embedding`, "", webSearchTask),
		rule(`^embeddinggemma|^embedding-gemma|^gemini-embedding-2`, "title: none | text: ", "task: search result | query: "),
		rule(`^mxbai-embed`, "", searchPassages),
		rule(`arctic-embed-?(2|[lm]-v2)`, "", "query: "),
		rule(`arctic-embed`, "", searchPassages),
	}
}

// KnownPrefixes returns the prefixes that a model was trained with, and whether
// the model is known to have any rule. The name may carry an owner
// ("intfloat/multilingual-e5-base") and a tag ("nomic-embed-text:v1.5").
func KnownPrefixes(model string) (Prefixes, bool) {
	name := bareModel(model)
	for _, rule := range prefixRules() {
		if rule.pattern.MatchString(name) {
			return rule.Prefixes, true
		}
	}
	return Prefixes{}, false
}

// bareModel cuts owner and tag off and folds the case.
func bareModel(model string) string {
	name := strings.ToLower(strings.TrimSpace(model))
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	if i := strings.IndexByte(name, ':'); i >= 0 {
		name = name[:i]
	}
	return name
}

// nativeDimensions returns what hosted models answer when no size is asked for,
// 0 if unknown. Servers that anybody may run are asked instead.
func nativeDimensions(model string) int {
	switch bareModel(model) {
	case "text-embedding-3-small", "text-embedding-ada-002":
		return 1536
	case "text-embedding-3-large", "gemini-embedding-001", "gemini-embedding-2":
		return 3072
	}
	return 0
}
