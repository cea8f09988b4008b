package builtin

// isCommon reports whether an English stem is so frequent that it says little about
// what a text is about. Part of Version.
func isCommon(stem string) bool {
	switch stem {
	case "about", "after", "again", "ago", "all", "alreadi", "also", "alway", "anoth", "any", "around", "ask", "away",
		"back", "becom", "befor", "begin", "best", "better", "big", "both", "bring",
		"call", "chang", "come", "day", "differ", "down", "dure", "each", "end", "enough", "even", "ever", "everi", "exact",
		"feel", "few", "find", "first", "front", "get", "give", "go", "good", "great", "happen", "hear", "hello", "help",
		"hey", "hi", "high", "hope", "just", "keep", "kind", "know",
		"larg", "last", "later", "leav", "less", "let", "life", "like", "littl", "long", "look", "lot", "love",
		"make", "mani", "may", "mean", "more", "most", "much", "need", "never", "new", "next", "nice", "no", "now",
		"off", "often", "oh", "okay", "old", "one", "onli", "other", "out", "over", "own",
		"part", "person", "place", "pleas", "point", "put", "quit", "realli", "recent", "right",
		"same", "say", "see", "seem", "show", "sinc", "small", "some", "someth", "start", "still", "stuff", "sure",
		"take", "talk", "tell", "thank", "thing", "think", "though", "time", "today", "togeth", "too", "tri", "turn", "two",
		"under", "up", "use", "veri", "want", "way", "well", "wait", "with", "within", "without", "work", "wow",
		"year", "yeah", "yes", "yet":
		return true
	}
	return false
}

// isFunctionCharacter reports whether a character mostly builds sentences: Chinese
// particles, pronouns and measure words, Japanese and Korean particles and
// endings. Part of Version.
func isFunctionCharacter(r rune) bool {
	switch r {
	case '的', '了', '是', '在', '着', '一', '个', '地', '得', '和', '与', '我', '你', '他', '她', '它', '们', '这', '那',
		'有', '也', '都', '就', '吗', '呢', '吧', '啊', '之', '其', '于', '被', '把', '为', '从', '到', '对', '要', '会',
		'上', '中', '里', '些', '什', '么', '名', '只', '位', '条', '正', '以', '及', '而', '或',
		'を', 'に', 'が', 'は', 'の', 'と', 'で', 'も', 'へ', 'や', 'か', 'ね', 'よ', 'な', 'て', 'た', 'し', 'す', 'る', 'ま', 'い', 'う',
		'은', '는', '이', '가', '을', '를', '에', '의', '도', '로', '과', '와', '하', '다', '고':
		return true
	}
	return false
}
