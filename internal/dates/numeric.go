package dates

import "time"

// digitsAt reads up to four digits at byte i.
func digitsAt(s string, i int) (v, next int) {
	for next = i; next < len(s) && next < i+4 && isDigit(s[next]); next++ {
		v = v*10 + int(s[next]-'0')
	}
	return v, next
}

// numeric reads dates in digits: 2023-05-08, 2023/5/8, 5/8/2023, 8.5.2023,
// 2023-05, 20230508, with a time after a full date. It returns the byte after it.
func (p *parser) numeric(t *token, ctx context) (match, int) {
	s := p.s
	if t.is(flagSpelled | flagOrdinal | flagTens | flagComma) {
		return match{}, 0
	}
	if t.digits == 8 && !t.is(flagGlued) {
		m := p.dated(int(t.val)/10000, max(1, int(t.val)/100%100), int(t.val)%100, 0)
		if y := t.val / 10000; y < 1900 || y > 2099 || t.val/100%100 > 12 || t.val/100%100 == 0 {
			m.conf = 0
		}
		m.conf *= 0.5
		return m, t.end
	}
	a, i := digitsAt(s, t.start)
	na := i - t.start
	if i >= len(s) || na == 3 || t.digits > 4 {
		return match{}, 0
	}
	sep := s[i]
	if sep != '-' && sep != '/' && sep != '.' || p.digitsBefore(t.start, na) {
		return match{}, 0
	}
	b, j := digitsAt(s, i+1)
	nb := j - i - 1
	if nb < 1 || nb > 2 {
		return match{}, 0
	}
	if j < len(s) && s[j] == sep {
		c, k := digitsAt(s, j+1)
		if nc := k - j - 1; nc > 0 && (k == len(s) || !isDigit(s[k])) && !(k+1 < len(s) && s[k] == sep && isDigit(s[k+1]) && sep != '-') {
			return p.threeParts(a, b, c, na, nc, sep, k)
		}
		return match{}, 0
	}
	if j < len(s) && (isDigit(s[j]) || isAlpha(s[j]) || j+1 < len(s) && isDigit(s[j+1]) && (s[j] == '.' || s[j] == ':' || s[j] == '-' || s[j] == '/')) {
		return match{}, 0
	}
	return p.twoParts(a, b, na, nb, sep, j, ctx), j
}

// digitsBefore reports whether a number that starts a date is itself a part of
// something longer.
func (p *parser) digitsBefore(i, digits int) bool {
	if i == 0 {
		return false
	}
	switch c := p.s[i-1]; c {
	case '/', '-':
		return digits != 4 || i > 1 && isDigit(p.s[i-2])
	case ':':
		return i > 1 && isDigit(p.s[i-2])
	case '.', ',', '$', '#', '+', '*', '%', '@':
		return true
	}
	return false
}

func (p *parser) threeParts(a, b, c, na, nc int, sep byte, end int) (match, int) {
	var m match
	switch {
	case na == 4 && nc <= 2:
		if b >= 1 && b <= 12 && plausibleYear(a) {
			m = p.dated(a, b, c, 0)
		}
	case na > 2 || nc != 4 && (nc != 2 || sep != '/'):
	default:
		conf := 0.95
		if nc == 2 {
			c, conf = fullYear(c), 0.6
		}
		if !plausibleYear(c) {
			return match{}, 0
		}
		m = p.dayOrMonth(a, b, sep, func(month, d int) span { return datedSpan(c, month, d, 0) })
		m.conf *= conf
	}
	if !m.ok() {
		return m, 0
	}
	return p.stamp(m, end)
}

// dayOrMonth orders the first two numbers of a date: the month first, as in
// America, unless points separate them or it cannot be. The other order is the
// second reading.
func (p *parser) dayOrMonth(a, b int, sep byte, of func(month, d int) span) match {
	m := match{grain: GrainDay, conf: 1}
	if a >= 1 && a <= 12 {
		m.span = of(a, b)
	}
	if b >= 1 && b <= 12 && a != b {
		m.alt = of(b, a)
	}
	if m.span.empty() || sep == '.' && !m.alt.empty() {
		m.span, m.alt = m.alt, m.span
	}
	if sep == '.' {
		m.alt = span{}
	}
	if m.span.empty() {
		return match{}
	}
	if !m.alt.empty() {
		m.conf = 0.6
	}
	return m
}

func (p *parser) twoParts(a, b, na, nb int, sep byte, end int, ctx context) match {
	switch {
	case sep == '.':
	case na == 4 && nb == 2 && b >= 1 && b <= 12 && a >= 1800 && a <= 2199:
		return match{span: monthSpan(a, b), grain: GrainMonth, conf: 0.8}
	case na <= 2 && nb <= 2 && sep == '/' && (ctx == ctxOn || ctx == ctxTime):
		m := p.dayOrMonth(a, b, sep, func(month, d int) span {
			best, _ := p.nearest(func(y int) span { return datedSpan(y, month, d, 0) })
			return best
		})
		m.repeat, m.others, m.conf = Yearly, 0.8, m.conf*0.7
		return m
	}
	return match{}
}

// stamp reads the time of day after a full date at byte i, as in
// 2023-05-08T10:30:00Z. A time of another zone is moved to the reference's.
func (p *parser) stamp(m match, i int) (match, int) {
	s := p.s
	j := i
	if j >= len(s) || s[j] != 'T' && s[j] != ' ' {
		return m, i
	}
	h, j := digitsAt(s, j+1)
	if j >= len(s) || s[j] != ':' || h > 23 {
		return m, i
	}
	mi, k := digitsAt(s, j+1)
	if k != j+3 || mi > 59 {
		return m, i
	}
	if k+2 < len(s) && s[k] == ':' && isDigit(s[k+1]) && isDigit(s[k+2]) {
		k += 3
		if k+1 < len(s) && s[k] == '.' && isDigit(s[k+1]) {
			for k++; k < len(s) && isDigit(s[k]); {
				k++
			}
		}
	}
	from := m.span.from + civil(h*3600+mi*60)
	if off, next, ok := zone(s, k); ok {
		y, mo, d := dateOf(from.day())
		at := time.Date(y, time.Month(mo), d, 0, 0, int(from-dayCivil(from.day()))-off, 0, time.UTC)
		from, k = civilOf(at.In(p.loc)), next
	} else if k < len(s) && (s[k] == ' ' || isAlpha(s[k])) && h <= 12 && j-i <= 3 { // 10:30 pm
		n := k
		if s[n] == ' ' {
			n++
		}
		if n+1 < len(s) && s[n+1]|0x20 == 'm' && (s[n]|0x20 == 'p' || s[n]|0x20 == 'a') && (n+2 == len(s) || !isAlpha(s[n+2])) {
			from, k = m.span.from+civil((h%12)*3600+mi*60), n+2
			if s[n]|0x20 == 'p' {
				from += 12 * 3600
			}
		}
	}
	m.span, m.alt, m.grain = span{from, from + 60}, span{}, GrainHour
	return m, k
}

// zone reads Z or an offset like +08:00 and returns it in seconds.
func zone(s string, i int) (secs, next int, ok bool) {
	if i >= len(s) {
		return 0, i, false
	}
	if s[i] == 'Z' {
		return 0, i + 1, true
	}
	if s[i] != '+' && s[i] != '-' || i+5 > len(s) {
		return 0, i, false
	}
	v, j := digitsAt(s, i+1)
	switch {
	case j == i+3 && j+2 < len(s) && s[j] == ':':
		m, k := digitsAt(s, j+1)
		if k != j+3 {
			return 0, i, false
		}
		v, j = v*100+m, k
	case j != i+5:
		return 0, i, false
	}
	secs = v/100*3600 + v%100*60
	if secs > 15*3600 {
		return 0, i, false
	}
	if s[i] == '-' {
		secs = -secs
	}
	return secs, j, true
}
