package dates

// functionWord knows the words that join dates.
func functionWord(w string) entry {
	switch w {
	case "last", "previous", "preceding":
		return entry{kRel, -1, 0}
	case "past", "prior":
		return entry{kPast, -1, 0}
	case "this", "current":
		return entry{kRel, 0, 0}
	case "next", "coming", "upcoming":
		return entry{kRel, 1, 0}
	case "following":
		return entry{kFollowing, 0, 0}
	case "few", "several", "some", "many":
		return entry{kFew, 4, flagLoose}
	case "couple":
		return entry{kFew, 2, flagLoose}
	case "a", "an":
		return entry{kArticle, 1, 0}
	case "the":
		return entry{kThe, 0, 0}
	case "half":
		return entry{kHalf, 0, 0}
	case "early", "beginning", "start":
		return entry{kEdge, 0, 0}
	case "mid", "middle":
		return entry{kEdge, 1, 0}
	case "late", "end":
		return entry{kEdge, 2, 0}
	case "recently", "lately":
		return entry{kRecent, 30, 0}
	case "every", "each":
		return entry{kEvery, 0, 0}
	case "earlier":
		return entry{kEarlier, -1, 0}
	case "later":
		return entry{kEarlier, 1, 0}
	case "other":
		return entry{kOther, 0, 0}
	case "ago", "back":
		return entry{kAgo, -1, 0}
	case "hence":
		return entry{kFromNow, 0, 0}
	case "now":
		return entry{kNow, 0, 0}
	case "before":
		return entry{kBefore, 0, 0}
	case "after":
		return entry{kAfter, 0, 0}
	case "since":
		return entry{kSince, 0, 0}
	case "until", "till", "til", "through":
		return entry{kUntil, 0, 0}
	case "by":
		return entry{kBy, 0, 0}
	case "around", "about", "circa", "approximately", "roughly", "nearly", "almost":
		return entry{kAround, 0, 0}
	case "during", "throughout", "within":
		return entry{kDuring, 0, 0}
	case "in":
		return entry{kIn, 0, 0}
	case "on":
		return entry{kOn, 0, 0}
	case "at":
		return entry{kAt, 0, 0}
	case "of":
		return entry{kOf, 0, 0}
	case "from":
		return entry{kFrom, 0, 0}
	case "to":
		return entry{kTo, 0, 0}
	case "and":
		return entry{kAnd, 0, 0}
	case "between":
		return entry{kBetween, 0, 0}
	case "over":
		return entry{kOver, 0, 0}
	case "or":
		return entry{kOr, 0, 0}
	case "hundred":
		return entry{kHundred, 100, 0}
	}
	return entry{}
}

// numberWord returns the value of a number in words below a hundred, or -1.
func numberWord(w string) (v int, ordinal bool) {
	cardinals := [...]string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
		"twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"}
	tens := [...]string{"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}
	ordinals := [...]string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
		"twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"}
	// Most words of a text are none of these.
	switch w[0] {
	case 'z', 'o', 't', 'f', 's', 'e', 'n':
	default:
		return -1, false
	}
	if len(w) < 3 || len(w) > 11 {
		return -1, false
	}
	for i, c := range cardinals {
		if w == c {
			return i, false
		}
	}
	for i, c := range tens {
		if w == c {
			return 20 + 10*i, false
		}
	}
	for i, c := range ordinals {
		if w == c {
			return i + 1, true
		}
	}
	if w == "thirtieth" {
		return 30, true
	}
	return -1, false
}
