package text

import "strings"

// ascii analyses src[i:end], which is ASCII without white space.
func (a *analyzer) ascii(i, end int) {
	for i < end && !a.done {
		if !isAlnum(a.src[i]) {
			i++
			continue
		}
		if next := a.isoDate(i, end); next > i {
			i = next
			continue
		}
		i = a.compound(i, end)
	}
}

// wordEnd returns the end of the word that starts at i: letters and digits, an
// apostrophe between letters, a point or a comma between digits.
func (a *analyzer) wordEnd(i, end int) int {
	s := a.src
	digits := true
	for ; i < end; i++ {
		c := s[i]
		switch {
		case isDigit(c):
		case isAlpha(c):
			digits = false
		case i+1 >= end:
			return i
		case c == '\'' && isAlpha(s[i-1]) && isAlpha(s[i+1]):
		case (c == '.' || c == ',') && digits && isDigit(s[i+1]):
		default:
			return i
		}
	}
	return i
}

// compound emits the words from i that are joined without space, and, if together
// they look like an identifier, also the whole. It returns where it stopped.
func (a *analyzer) compound(i, end int) int {
	first := a.wordEnd(i, end)
	next := joint(a.src, first, end)
	if next == first {
		a.word(i, first)
		return a.suffixed(i, first, end)
	}
	if i < a.plain {
		a.word(i, first)
		return next
	}
	stop, whole := a.compoundEnd(i, first, end)
	if !whole {
		a.plain = stop
		a.word(i, first)
		return next
	}
	start := i
	if k := strings.Index(a.src[i:stop], "://"); k >= 0 {
		start = i + k + len("://")
	}
	if start < stop && stop-start <= maxWhole {
		name := Fold(a.src[start:stop])
		a.emit(name, name, KindWhole, start, stop)
	}
	for i < stop && !a.done {
		w := a.wordEnd(i, stop)
		a.word(i, w)
		i = joint(a.src, w, stop)
	}
	return stop
}

// compoundEnd follows words and joints and says whether they make an identifier:
// something with an underscore, slash, at sign, inner point or double colon, or
// with hyphens and a digit.
func (a *analyzer) compoundEnd(i, first, end int) (stop int, whole bool) {
	stop = first
	digit, hyphen := false, false
	for {
		for _, c := range []byte(a.src[i:stop]) {
			digit = digit || isDigit(c)
		}
		i = stop
		next := joint(a.src, stop, end)
		if next == stop {
			return stop, whole || hyphen && digit
		}
		switch a.src[stop] {
		case '_', '/', '\\', '@', '.':
			whole = true
		case ':':
			whole = whole || next-stop > 1
		case '-':
			hyphen = true
		}
		i, stop = next, a.wordEnd(next, end)
	}
}

// joint returns where the next word starts if what stands at i joins two words
// into one name, else i.
func joint(s string, i, end int) int {
	j := i
	for j < end && !isAlnum(s[j]) {
		j++
		if j-i > 3 {
			return i
		}
	}
	if j >= end || j == i {
		return i
	}
	switch s[i:j] {
	case "_", "__", ".", "@", "/", "\\", ":", "::", "-", "://", ":///", ":\\", "/_", "._",
		"=", "?", "&", "#", "+", "~", "%", "/@", "/.", "/~", "/?", "/#", "->":
		return j
	}
	return i
}

// suffixed adds the names that end in a sign: c++, c#, f#.
func (a *analyzer) suffixed(i, w, end int) int {
	rest := a.src[w:end]
	n := 0
	switch {
	case w-i > 1 || !isAlpha(a.src[i]):
	case strings.HasPrefix(rest, "++"):
		n = 2
	case strings.HasPrefix(rest, "#"):
		n = 1
	}
	if n > 0 {
		a.pos--
		name := Fold(a.src[i : w+n])
		a.emit(name, name, KindWhole, i, w+n)
		a.pos++
	}
	return w + n
}

// word emits one word, and the parts of a name in camel case or of letters and
// digits, and moves to the next position.
func (a *analyzer) word(i, end int) {
	l := lookup(a.src[i:end])
	a.emit(l.term, l.folded, l.kind, i, end)
	if l.kind == KindNumber {
		a.num, a.numEnd = l.term, end
	}
	if !l.split {
		a.pos++
		return
	}
	for i < end && !a.done {
		n := i + partEnd(a.src[i:end], 0)
		if n-i > 1 && !isOrdinal(a.src[i:n]) || isDigit(a.src[i]) {
			p := lookup(a.src[i:n])
			a.emit(p.term, p.folded, p.kind, i, n)
		}
		a.pos++
		i = n
	}
}

// partEnd returns the end of the part of word that starts at i. A new part starts
// at a capital after a small letter, at the last of several capitals before
// a small letter, and, in a word with one such change only, between letters
// and digits: a hash in hexadecimal stays whole.
func partEnd(word string, i int) int {
	changes := 0
	for k := 1; k < len(word); k++ {
		if isDigit(word[k]) != isDigit(word[k-1]) && word[k] != '\'' && word[k-1] != '\'' {
			changes++
		}
	}
	for k := i + 1; k < len(word); k++ {
		p, c := word[k-1], word[k]
		switch {
		case c == '\'' || p == '\'' || c == '.' || c == ',':
			return len(word) // a contraction, or a number with a unit
		case isDigit(c) != isDigit(p):
			if changes == 1 {
				return k
			}
		case isUpper(c) && isAlpha(p) && !isUpper(p):
			return k
		case isUpper(p) && k > i+1 && !isUpper(c) && !pluralCapitals(word[k:]):
			return k - 1
		}
	}
	return len(word)
}

// pluralCapitals reports whether rest is the plural s of an acronym: "APIs".
func pluralCapitals(rest string) bool { return rest == "s" }

// isOrdinal reports whether a part is what is left of "8th" without its number.
func isOrdinal(part string) bool {
	return part == "th" || part == "st" || part == "nd" || part == "rd"
}
