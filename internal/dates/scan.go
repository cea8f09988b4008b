package dates

import "unicode/utf8"

// token is one word, number or sign.
type token struct {
	start, end int
	val        int32
	kind       kind
	digits     uint8
	fl         flags
}

func (t *token) is(f flags) bool { return t.fl&f != 0 }

const (
	windowSize = 128
	lookAhead  = 40 // more tokens than the longest expression
	lookBehind = 4
)

// scanner cuts a text into tokens and keeps a window of them.
type scanner struct {
	s    string
	pos  int
	n    int
	done bool
	none token // stands for what is outside of the window
	tok  [windowSize]token
}

// at returns token i of the window, which is of kind kEnd outside of it.
func (sc *scanner) at(i int) *token {
	if i < 0 || i >= sc.n {
		return &sc.none
	}
	return &sc.tok[i]
}

// slide drops tokens before i, except a few, and fills the window. It returns
// the new index of token i.
func (sc *scanner) slide(i int) int {
	if drop := i - lookBehind; drop > 0 {
		sc.n = copy(sc.tok[:], sc.tok[drop:sc.n])
		i = lookBehind
	}
	for sc.n < windowSize && !sc.done {
		sc.next()
	}
	return i
}

// next scans one token.
func (sc *scanner) next() {
	s, fl := sc.s, flags(0)
	if sc.pos == 0 {
		fl = flagLine
	}
	for sc.pos < len(s) {
		c := s[sc.pos]
		switch {
		case c == '\n':
			fl |= flagLine | flagSpace
		case c <= ' ':
			fl |= flagSpace
		case c == 0xc2 && sc.pos+1 < len(s) && s[sc.pos+1] == 0xa0: // no-break space
			fl |= flagSpace
			sc.pos++
		case isAlpha(c) || c == '_':
			sc.word(fl)
			return
		case isDigit(c):
			sc.number(fl)
			return
		case c < utf8.RuneSelf:
			sc.add(token{start: sc.pos, end: sc.pos + 1, kind: kSign, val: int32(c), fl: fl})
			return
		default:
			sc.rune(fl)
			return
		}
		sc.pos++
	}
	sc.done = true
}

func (sc *scanner) add(t token) {
	sc.tok[sc.n] = t
	sc.n++
	sc.pos = t.end
}

// rune scans what is not ASCII: dashes and apostrophes are signs, the characters
// that start Chinese expressions are tokens, other runs are one word.
func (sc *scanner) rune(fl flags) {
	r, n := utf8.DecodeRuneInString(sc.s[sc.pos:])
	t := token{start: sc.pos, end: sc.pos + n, kind: kWord, fl: fl}
	switch {
	case r >= '‐' && r <= '―' || r == '−':
		t.kind, t.val = kSign, '-'
	case r == '’' || r == '‘':
		t.kind, t.val = kSign, '\''
	case startsHan(r):
		t.kind = kHan
	case sc.n > 0 && fl == 0:
		if last := &sc.tok[sc.n-1]; last.kind == kWord && last.digits == 0 && last.end == sc.pos && sc.s[last.start] >= utf8.RuneSelf {
			last.end, sc.pos = t.end, t.end
			return
		}
	}
	sc.add(t)
}

// apostrophe returns the length of an apostrophe at i, or 0.
func apostrophe(s string, i int) int {
	if i < len(s) && s[i] == '\'' {
		return 1
	}
	if i+2 < len(s) && s[i:i+3] == "’" {
		return 3
	}
	return 0
}

// word scans letters, with digits and underscores, and what follows an
// apostrophe. A genitive keeps the meaning of its word.
func (sc *scanner) word(fl flags) {
	s, start := sc.s, sc.pos
	var low [16]byte
	n := 0
	i := start
	for ; i < len(s) && (isAlpha(s[i]) || isDigit(s[i]) || s[i] == '_'); i++ {
		if n < len(low) {
			low[n] = s[i] | 0x20
			if isDigit(s[i]) {
				low[n] = s[i]
			}
		}
		n++
	}
	t := token{start: start, end: i, kind: kWord, fl: fl}
	if s[start] >= 'A' && s[start] <= 'Z' {
		t.fl |= flagUpper
	}
	if n > 13 {
		sc.add(t)
		return
	}
	e := english(string(low[:n]))
	if a := apostrophe(s, i); a > 0 && i+a < len(s) && isAlpha(s[i+a]) {
		tail := i + a
		for tail < len(s) && isAlpha(s[tail]) {
			tail++
		}
		switch word := s[i+a : tail]; {
		case word == "s" || word == "S":
			t.fl |= flagOwner
		case word == "clock" && n == 1 && low[0] == 'o':
			e = entry{kind: kOclock}
		default:
			e = entry{kind: kWord}
		}
		t.end = tail
	} else if a > 0 && low[n-1] == 's' && e.kind != kWord {
		t.fl |= flagOwner
		t.end = i + a
	}
	if joined(s, start, t.end) {
		t.fl |= flagGlued
	}
	t.kind, t.val, t.fl = e.kind, int32(e.val), t.fl|e.fl
	sc.add(t)
}

// joined reports whether the word s[i:j] is a part of a path, an address or an
// identifier. Hyphens do not count.
func joined(s string, i, j int) bool {
	if i > 0 {
		switch c := s[i-1]; c {
		case '/', '\\', '@', '#', '=', '&', '$', '~', '%':
			return true
		case '.', ':':
			if i > 1 && s[i-2] > ' ' && s[i-2] != '.' && s[i] >= 'a' {
				return true
			}
		}
	}
	if j < len(s) {
		switch c := s[j]; c {
		case '/', '\\', '@', '=', '_', '(', '[':
			return true
		case '.', ':':
			return j+1 < len(s) && (s[j+1] >= 'a' && s[j+1] <= 'z' || s[j+1] == '/' || c == ':' && s[j+1] == ':')
		}
	}
	return false
}

// number scans a run of digits with its suffix.
func (sc *scanner) number(fl flags) {
	s, start := sc.s, sc.pos
	i, v := start, 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		if i-start < 9 {
			v = v*10 + int(s[i]-'0')
		}
	}
	t := token{start: start, kind: kNumber, val: int32(v), digits: uint8(min(i-start, 200)), fl: fl}
	if i-start > 8 {
		t.fl |= flagWide | flagGlued
	}
	for i+3 < len(s) && s[i] == ',' && isDigit(s[i+1]) && isDigit(s[i+2]) && isDigit(s[i+3]) && (i+4 == len(s) || !isDigit(s[i+4])) {
		t.fl |= flagComma | flagGlued
		i += 4
	}
	i = sc.numberSuffix(&t, i)
	t.end = i
	if start > 0 && gluesBefore(s, start) || gluesAfter(s, i) {
		t.fl |= flagGlued
	}
	sc.add(t)
}

// numberSuffix reads th, st, nd, rd and the s of decades after digits that end
// at i. Other letters make the number a part of a name, except of a clock time.
func (sc *scanner) numberSuffix(t *token, i int) int {
	s := sc.s
	j := i
	for j < len(s) && j-i < 8 && isAlpha(s[j]) {
		j++
	}
	if k := i + apostrophe(s, i); j == i && k > i && k < len(s) && s[k] == 's' && t.val%10 == 0 && t.digits > 1 && (k+1 == len(s) || !isAlpha(s[k+1])) {
		t.fl |= flagTens
		return k + 1
	}
	if j == i {
		return i
	}
	if j < len(s) && (isDigit(s[j]) || s[j] == '_') {
		t.fl |= flagGlued
		return i
	}
	switch suffix := s[i:j]; suffix {
	case "st", "nd", "rd", "th", "ST", "ND", "RD", "TH":
		t.fl |= flagOrdinal
		return j
	case "s":
		if t.val%10 == 0 && t.digits > 1 {
			t.fl |= flagTens
			return j
		}
	case "am", "pm", "AM", "PM", "a", "p":
		return i
	}
	t.fl |= flagGlued
	return i
}

// gluesBefore reports whether what stands before i makes a number at i a part of
// something else: a price, a version, a path.
func gluesBefore(s string, i int) bool {
	switch c := s[i-1]; c {
	case '$', '#', '.', '/', '\\', '@', '=', '+', '-', '_', '^', '*', '%', '~', '&', ':', ',':
		return true
	case 0xa3, 0xa5: // £ ¥ ￥
		return i > 1 && s[i-2] == 0xc2 || i > 2 && s[i-3:i] == "￥"
	case 0xac: // €
		return i > 2 && s[i-3:i] == "€"
	}
	return false
}

func gluesAfter(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	switch s[i] {
	case '/', '\\', '@', '=', '_', '%', '^', '*', '(', '$', '+':
		return true
	case '.', ',', ':':
		return i+1 < len(s) && isDigit(s[i+1])
	case '-':
		return false
	}
	return false
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
