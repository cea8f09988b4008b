package text

import "strings"

// isStop reports whether a word is an English stop word. "IT", "US" and "WHO" in
// capitals are names. Months ("May") are never stop words.
func isStop(raw, folded string) bool {
	switch raw {
	case "IT", "US", "WHO":
		return false
	}
	if stopWord(folded) {
		return true
	}
	base, suffix, ok := strings.Cut(folded, "'")
	if !ok {
		return false
	}
	switch suffix {
	case "s", "re", "ve", "ll", "d", "m":
		return stopWord(base)
	case "t":
		return strings.HasSuffix(base, "n")
	}
	return false
}

// stopWord holds the function words of English: what nearly every text has and no
// question is about. A switch compiles to a search by length and bytes.
func stopWord(s string) bool {
	switch s {
	case "a", "an", "the",
		"i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves",
		"you", "your", "yours", "yourself", "yourselves", "he", "him", "his", "himself",
		"she", "her", "hers", "herself", "it", "its", "itself",
		"they", "them", "their", "theirs", "themselves",
		"what", "which", "who", "whom", "whose", "when", "where", "why", "how",
		"this", "that", "these", "those", "there", "here",
		"am", "is", "are", "was", "were", "be", "been", "being",
		"have", "has", "had", "having", "do", "does", "did", "doing", "done",
		"will", "would", "shall", "should", "can", "could", "might", "must",
		"and", "but", "or", "nor", "if", "because", "as", "until", "while", "than",
		"of", "at", "by", "for", "with", "into",
		"through", "to", "from", "in", "on", "onto", "upon",
		"then", "such",
		"not", "so":
		return true
	}
	return false
}
