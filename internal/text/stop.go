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

// asides are words of English that hardly any question is about, but that texts are found by where
// nothing else is asked.
var asides = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`about after again against all almost along already also although always among any anybody anyone anything
		around before behind beside besides between both during each either else enough ever every everybody everyone everything except few
		however instead just let lets many maybe more most much neither nobody none nothing often once only other others otherwise own per
		perhaps please quite rather really same several since some somebody someone something sometimes somewhere still though thus too
		toward towards unless very via whatever whenever whether within without yet`) {
		out[w] = true
	}
	return out
}()

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
