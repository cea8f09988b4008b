package dates

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// token is a piece of text that may belong to a date.
type token struct {
	entry
	start, end int
	digits     int   // of a number that is written digit by digit
	date       match // of a numeric date
	han        bool
}

// longestWord is the length of the longest word of english.
const longestWord = 10

// scan cuts a text into tokens. Words without a meaning become breaks, neighbours
// of which are joined, so that the tokens are few.
func scan(s string) []token {
	var out []token
	last := &token{}
	for i := 0; i < len(s); {
		t := next(s, i, last)
		i = t.end
		if t.kind == kBreak && last.kind == kBreak {
			last.end = t.end
			continue
		}
		if t.kind != kEnd { // kEnd: space, or a sign that may stand inside a date
			out = append(out, t)
			last = &out[len(out)-1]
		}
	}
	return out
}

// next returns the token at i, which is at least one character long. last is the one
// before it.
func next(s string, i int, last *token) token {
	c := s[i]
	switch {
	case asciiDigit(c):
		return number(s, i)
	case asciiLetter(c) || c == '_':
		return word(s, i)
	case c < utf8.RuneSelf:
		t := token{start: i, end: i + 1}
		abbreviation := last.end == i && last.unsure && (last.kind == kMonth || last.kind == kWeekday)
		paragraph := strings.HasPrefix(s[i:], "\n\n")
		if strings.IndexByte(" \t\n,.()[]\"*-/", c) < 0 || c == '.' && !abbreviation || paragraph {
			t.kind = kBreak
		}
		return t
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if _, digit := hanDigits[r]; digit || unicode.Is(unicode.Han, r) {
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
		t.entry = e
		if strings.HasPrefix(s[end:], "'s") {
			t.end += 2
		}
	}
	return t
}

// glued reports whether a word is a part of a name such as may.go or foo/may/bar.
func glued(s string, from, to int) bool {
	if from > 0 && strings.IndexByte("-./@=$", s[from-1]) >= 0 || to < len(s) && strings.IndexByte("-/@=", s[to]) >= 0 {
		return true
	}
	return to+1 < len(s) && s[to] == '.' && asciiLetter(s[to+1])
}

// layouts are how dates are written in digits; 3/4/2023 is read by the first that fits.
var layouts = strings.Fields("2006-1-2 2006/1/2 2006.1.2 1/2/2006 2/1/2006 1-2-2006 2-1-2006 2.1.2006 2006-1 2006/1")

// number reads a run of digits, separators and letters that begins with a digit: a
// number, an ordinal, a whole date or time stamp, or a break for what is none of them.
func number(s string, i int) token {
	t := token{start: i, end: i, entry: entry{kind: kBreak}}
	for t.end < len(s) && (wordByte(s[t.end]) || t.end+1 < len(s) && strings.IndexByte("-/.:,", s[t.end]) >= 0 && asciiDigit(s[t.end+1])) {
		t.end++
	}
	run := s[i:t.end]
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	if strings.ContainsRune("$€£¥￥#@%._", before) || strings.HasPrefix(s[t.end:], "%") { // a price, a version, a share
		return t
	}
	if day, _, _ := strings.Cut(run, "T"); len(day) >= len("2006-1") && len(day) <= len("2006-01-02") {
		t.numericDate(day)
		return t
	}
	suffix := strings.ToLower(strings.TrimLeft(run, "0123456789"))
	value, err := strconv.Atoi(run[:len(run)-len(suffix)])
	switch {
	case err != nil || len(run) > 4 || strings.ContainsRune("-/=", before):
	case suffix == "":
		t.kind, t.val, t.digits = kNumber, value, len(run)
		t.sign(s)
	case suffix == "st" || suffix == "nd" || suffix == "rd" || suffix == "th":
		t.kind, t.val = kOrdinal, value
	}
	return t
}

// sign makes a number a year, a month or a day if a Chinese sign behind it says so.
func (t *token) sign(s string) {
	rest := strings.TrimLeft(s[t.end:], " ")
	for _, g := range hanSigns {
		if strings.HasPrefix(rest, g.sign) && t.val >= g.min && t.val <= g.max {
			t.kind, t.end, t.han = g.kind, len(s)-len(rest)+len(g.sign), true
			return
		}
	}
}

// numericDate reads a date that is written in digits.
func (t *token) numericDate(s string) {
	for _, layout := range layouts {
		at, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		y, m, d := at.Date()
		if len(layout) == len("2006-1") {
			d = 0
		}
		date := absolute(y, int(m), d)
		if t.kind == kDate && t.date.span != date.span {
			t.date.conf = 0.6
			return
		}
		t.kind, t.date = kDate, date
	}
}

// han reads the longest Chinese word or numeral at i.
func han(s string, i int) token {
	t := token{start: i, end: i, han: true}
	if hanNumber(s, &t); t.end > i {
		t.sign(s)
		return t
	}
	end := i
	for range longestHan {
		_, n := utf8.DecodeRuneInString(s[end:])
		end += n
		if e, ok := chinese[s[i:end]]; ok {
			t.entry, t.end = e, end
		}
	}
	if t.end == i {
		_, n := utf8.DecodeRuneInString(s[i:])
		t.kind, t.end = kBreak, i+n
	}
	return t
}

// hanNumber reads a Chinese numeral: 二〇二三 digit by digit, or 二十一, 两千零二十三.
func hanNumber(s string, t *token) {
	sum, last := 0, 0
	multiplied := false
	for t.end < len(s) {
		r, n := utf8.DecodeRuneInString(s[t.end:])
		d, ok := hanDigits[r]
		if !ok || t.digits > 4 {
			break
		}
		switch {
		case d >= 10:
			sum, last, multiplied = sum+max(last, 1)*d, 0, true
		case multiplied:
			last = d
		default:
			last, t.digits = last*10+d, t.digits+1
		}
		t.kind, t.end = kNumber, t.end+n
	}
	if t.val = sum + last; multiplied {
		t.digits = 0
	}
}
