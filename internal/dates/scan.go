package dates

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a piece of text that may belong to a date.
type token struct {
	entry
	start, end int
	digits     int // of a number written in digits
	y, m, d    int // of a numeric date; d is 0 for a month
	swapped    bool
	han        bool
	capital    bool
}

// longestWord is the length of the longest word of english.
const longestWord = 10

// scan cuts a text into tokens. Words without a meaning become breaks, neighbours
// of which are joined, so that the tokens are few.
func scan(s string) []token {
	var out []token
	for i := 0; i < len(s); {
		t := next(s, i)
		i = t.end
		if t.kind == kBreak && len(out) > 0 && out[len(out)-1].kind == kBreak {
			out[len(out)-1].end = t.end
			continue
		}
		if t.kind != kEnd { // kEnd: space, or a sign that may stand inside a date
			out = append(out, t)
		}
	}
	return out
}

// next returns the token at i, which is at least one character long.
func next(s string, i int) token {
	c := s[i]
	switch {
	case asciiDigit(c):
		return number(s, i)
	case asciiLetter(c) || c == '_':
		return word(s, i)
	case c < utf8.RuneSelf:
		t := token{start: i, end: i + 1}
		if !strings.ContainsRune(" \t\n,.()[]\"*", rune(c)) && !(c == '-' || c == '/') {
			t.kind = kBreak
		}
		if c == '.' && !abbreviated(s, i) || c == '\n' && i+1 < len(s) && s[i+1] == '\n' {
			t.kind = kBreak
		}
		return t
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if d, _ := digit(s[i:]); d >= 0 {
		return number(s, i)
	}
	if unicode.Is(unicode.Han, r) || r == '〇' {
		return han(s, i)
	}
	t := token{start: i, end: i + n}
	if !unicode.IsSpace(r) && r != '（' && r != '）' {
		t.kind = kBreak
	}
	return t
}

func asciiDigit(c byte) bool  { return c >= '0' && c <= '9' }
func asciiLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func wordByte(c byte) bool    { return asciiDigit(c) || asciiLetter(c) || c == '_' }

// abbreviated reports whether the period at i may end "Jan." rather than a sentence.
func abbreviated(s string, i int) bool {
	k := i
	for k > 0 && asciiLetter(s[k-1]) {
		k--
	}
	e, ok := english[strings.ToLower(s[k:i])]
	return ok && i-k <= longestWord && e.unsure && (e.kind == kMonth || e.kind == kWeekday)
}

// word reads a run of letters and digits that begins with a letter.
func word(s string, i int) token {
	end := i
	for end < len(s) && wordByte(s[end]) {
		end++
	}
	t := token{start: i, end: end, entry: entry{kind: kBreak}}
	if end-i > longestWord || glued(s, i, end) {
		return t
	}
	if e, ok := english[strings.ToLower(s[i:end])]; ok {
		t.entry, t.capital = e, s[i] < 'a'
		if strings.HasPrefix(s[end:], "'s") {
			t.end += 2
		}
	}
	return t
}

// glued reports whether a word is a part of a name such as may.go or foo/may/bar.
// A word between a number and a separator ("8-May-2023") is none.
func glued(s string, from, to int) bool {
	numberBefore := from >= 2 && asciiDigit(s[from-2])
	numberAfter := to+1 < len(s) && asciiDigit(s[to+1])
	if from > 0 && strings.IndexByte("-./@=$", s[from-1]) >= 0 && !numberBefore {
		return true
	}
	if to < len(s) && strings.IndexByte("-/@=", s[to]) >= 0 && !numberAfter {
		return true
	}
	return to+1 < len(s) && s[to] == '.' && asciiLetter(s[to+1])
}

// digit returns the value and size of the ASCII or full-width digit that s begins
// with, or -1.
func digit(s string) (value, size int) {
	r, size := utf8.DecodeRuneInString(s)
	if r >= '０' && r <= '９' {
		r += '0' - '０'
	}
	if r < '0' || r > '9' {
		return -1, 0
	}
	return int(r - '0'), size
}

// number reads digits at i, with the separators and digits that follow: a number, an
// ordinal, a whole date, or a break for what is neither.
func number(s string, i int) token {
	t := token{start: i, end: i, entry: entry{kind: kBreak}}
	named := i > 0 && (s[i-1] == '-' || s[i-1] == '/') && monthBefore(s, i-1) // "May-08-2023"
	var value, count [3]int
	var sep byte
	n, clean := 0, true
	for more := true; more; n++ {
		k := min(n, 2)
		value[k], count[k] = 0, 0
		for ; t.end < len(s); count[k]++ {
			d, size := digit(s[t.end:])
			if d < 0 {
				break
			}
			value[k], t.end = min(value[k]*10+d, 1<<20), t.end+size
		}
		if more = t.end+1 < len(s) && !named && strings.IndexByte("-/.:,", s[t.end]) >= 0 && asciiDigit(s[t.end+1]); more {
			clean = clean && (n == 0 || sep == s[t.end])
			sep = s[t.end]
			t.end++
		}
	}
	rest := s[t.end:]
	clean = clean && n <= 3 && mayFollow(s[:i], n) && !strings.HasPrefix(rest, "%")
	stamp := n > 1 && len(rest) > 1 && rest[0] == 'T' && asciiDigit(rest[1]) // the time of day of a time stamp
	for t.end < len(s) && wordByte(s[t.end]) {
		t.end++
	}
	suffix := strings.ToLower(s[len(s)-len(rest) : t.end])
	switch {
	case !clean:
	case n == 1 && suffix == "" && count[0] <= 4:
		t.kind, t.val, t.digits = kNumber, value[0], count[0]
	case n == 1 && count[0] <= 2 && (suffix == "st" || suffix == "nd" || suffix == "rd" || suffix == "th"):
		t.kind, t.val = kOrdinal, value[0]
	case n > 1 && (suffix == "" || stamp) && numericDate(&t, value, count, n, sep):
		t.kind = kDate
	}
	return t
}

// mayFollow reports whether a number of so many parts may begin a date behind the
// given text: a price, a version or the rest of a name is none.
func mayFollow(before string, parts int) bool {
	if before == "" {
		return true
	}
	if r, _ := utf8.DecodeLastRuneInString(before); strings.ContainsRune("$€£¥￥#@%._", r) {
		return false
	}
	switch c := before[len(before)-1]; c {
	case '-', '/', '=':
		k := len(before) - 1
		for day := k; k > 0 && asciiDigit(before[k-1]) && day-k < 2; k-- { // the year of "May-08-2023"
		}
		return parts == 3 || monthBefore(before, len(before)-1) || k > 0 && k < len(before)-1 && monthBefore(before, k-1)
	}
	return true
}

// monthBefore reports whether a month's name ends at i.
func monthBefore(s string, i int) bool {
	k := i
	for k > 0 && asciiLetter(s[k-1]) {
		k--
	}
	return i-k <= longestWord && english[strings.ToLower(s[k:i])].kind == kMonth
}

// numericDate decides what two or three numbers with a separator mean.
func numericDate(t *token, p, n [3]int, parts int, sep byte) bool {
	switch {
	case sep == ':' || sep == ',':
		return false
	case parts == 3 && n[0] == 4 && n[1] <= 2 && n[2] <= 2:
		t.y, t.m, t.d = p[0], p[1], p[2]
	case parts == 3 && n[2] == 4 && n[0] <= 2 && n[1] <= 2:
		t.y, t.m, t.d = p[2], p[0], p[1]
		if sep == '.' || p[0] > 12 { // 8.5.2023 has the day first
			t.m, t.d = p[1], p[0]
		} else {
			t.swapped = sep == '/' && p[1] <= 12 && p[0] != p[1]
		}
	case parts == 2 && n[0] == 4 && n[1] <= 2 && (sep == '-' || sep == '/'):
		t.y, t.m = p[0], p[1]
		return t.m >= 1 && t.m <= 12 && t.y >= minYear && t.y <= maxYear
	default:
		return false
	}
	return !dateSpan(t.y, t.m, t.d).empty()
}

// han reads the longest Chinese word or numeral at i.
func han(s string, i int) token {
	t := token{start: i, end: i, han: true}
	if value, digits, end := hanNumber(s, i); end > i {
		t.end, t.kind, t.val, t.digits = end, kNumber, value, digits
		return t
	}
	end, best := i, i
	for range longestHan {
		_, n := utf8.DecodeRuneInString(s[end:])
		if n == 0 {
			break
		}
		end += n
		if e, ok := chinese[s[i:end]]; ok {
			t.entry, best = e, end
		}
	}
	if t.end = best; best == i {
		_, n := utf8.DecodeRuneInString(s[i:])
		t.end, t.kind = i+n, kBreak
	}
	return t
}

// hanNumber reads a Chinese numeral: 二〇二三 digit by digit, or 二十一, 两千零二十三.
// digits is how many digits it has when read digit by digit, else 0.
func hanNumber(s string, i int) (value, digits, end int) {
	sum, last, plain := 0, 0, 0
	multiplied := false
	for end = i; end < len(s); {
		r, n := utf8.DecodeRuneInString(s[end:])
		d, ok := hanDigits[r]
		if !ok || plain > 4 {
			break
		}
		switch {
		case d == 20:
			sum, last, multiplied = sum+20, 0, true
		case d >= 10:
			sum, last, multiplied = sum+max(last, 1)*d, 0, true
		case multiplied:
			last = d
		default:
			last, plain = last*10+d, plain+1
		}
		end += n
	}
	if multiplied {
		plain = 0
	}
	return sum + last, plain, end
}
