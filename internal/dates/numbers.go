package dates

import "time"

// numberFirst reads what starts with a number.
func (p *parser) numberFirst(i, the int, ctx context) (match, int) {
	t := p.at(i)
	if m, end := p.numeric(t, ctx); m.ok() {
		m.end = end
		return m, p.tokenAfter(i, end)
	}
	if m, k := p.dayFirst(i, ctx); m.ok() {
		return m, k
	}
	if m, k := p.clockFirst(i, ctx); m.ok() {
		return m, k
	}
	if t.is(flagTens) {
		return p.decade(i, the, ctx)
	}
	if m, k := p.quantity(i); m.ok() {
		return m, k
	}
	if t.is(flagOrdinal) {
		return p.ordinal(i, the, ctx)
	}
	if t.digits == 4 {
		return p.yearAlone(i, ctx)
	}
	return match{}, i
}

// dayFirst reads "8 May 2023", "the 8th of May", "3-5 May", "8-May-2023".
func (p *parser) dayFirst(i int, ctx context) (match, int) {
	sep := p.at(i + 1)
	if t := p.at(i); sep.kind == kSign && (sep.val == '-' || sep.val == '/') && p.tight(i+1) && p.at(i+2).kind == kMonth && t.digits > 0 && t.digits < 3 {
		y := p.at(i + 4)
		if p.sign(i+3, sep.val) && y.kind == kNumber && y.digits == 4 && plausibleYear(int(y.val)) {
			return p.dated(int(y.val), int(p.at(i+2).val), int(t.val), 0), i + 5
		}
	}
	d, j := p.dayNumber(i, false)
	if d == 0 {
		return match{}, i
	}
	last := 0
	if p.sign(j, '-') || p.at(j).kind == kTo || p.at(j).kind == kAnd {
		k := j + 1
		if p.at(k).kind == kThe {
			k++
		}
		if e, next := p.dayNumber(k, true); e > d && p.namesMonth(next) {
			last, j = e, next
		}
	}
	of := p.at(j).kind == kOf
	if of {
		j++
	}
	mt := p.at(j)
	if mt.kind != kMonth || mt.is(flagGlued) {
		return match{}, i
	}
	month := int(mt.val)
	j++
	if mt.is(flagShort) && p.sign(j, '.') && p.tight(j) && p.at(j+1).kind != kEnd {
		j++
	}
	if y, next := p.yearAt(j, true); next > j {
		return p.dated(y, month, d, last), next
	}
	conf := 0.92
	if mt.is(flagAmbig) && !mt.is(flagUpper) && !of {
		if ctx == ctxNone && !p.at(i).is(flagOrdinal) {
			return match{}, i
		}
		conf = 0.7
	}
	m := p.yearly(func(y int) span { return datedSpan(y, month, d, last) }, GrainDay, conf)
	if m.span.empty() {
		return match{}, i
	}
	if last > 0 {
		m.rel = Between
	}
	return m, j
}

// decade reads "the 1990s", "the 90s", "'90s" (the apostrophe is at i-1).
func (p *parser) decade(i, the int, ctx context) (match, int) {
	t := p.at(i)
	y := int(t.val)
	if t.is(flagGlued) {
		return match{}, i
	}
	m := match{grain: GrainDecade, conf: 0.9}
	switch {
	case t.digits == 4 && y >= 1000 && y <= maxYear:
	case t.digits == 2 && (the < i || ctx == ctxIn || p.sign(i-1, '\'')):
		if y += 1900; y < 1930 {
			y += 100
		}
		m.conf = 0.8
	default:
		return match{}, i
	}
	m.span = span{yearSpan(y).from, yearSpan(y + 9).to}
	return m, i + 1
}

// ordinal reads "the first week of May", "second quarter of 2023" and "on the 8th".
func (p *parser) ordinal(i, the int, ctx context) (match, int) {
	t := p.at(i)
	n, j := int(t.val), i+1
	u := p.at(j)
	switch {
	case n < 1 || n > 31 || t.is(flagGlued):
		return match{}, i
	case u.kind == kUnit && u.val == uQuarter && n <= 4:
		return p.quarterFirst(i, n, j+1)
	case u.kind == kHalf && n <= 2:
		if y, next := p.yearAt(j+1, false); next > j+1 {
			first := dayOf(y, 6*n-5, 1)
			return match{span: span{dayCivil(first), dayCivil(dayOf(y, 6*n+1, 1))}, grain: GrainYear, conf: 0.95}, next
		}
	case (u.kind == kUnit || u.kind == kWeekday) && (p.at(j+1).kind == kOf || p.at(j+1).kind == kIn) && (n <= 5 || u.val == uDay):
		whole, k := p.point(j+2, ctxTime)
		if whole.ok() && whole.grain >= GrainMonth && whole.rel == On {
			return within(whole, u, n), k
		}
	case ctx == ctxOn && the < i && !t.is(flagSpelled) && (u.kind != kWord || p.ends(j)) && u.kind != kUnit && !(u.kind == kSign && u.val == '-'):
		day := p.today
		for p.dayIn(day) != n {
			day--
		}
		return match{span: days(day, 1), grain: GrainDay, repeat: Monthly, others: 0.6, conf: 0.7}, j
	}
	return match{}, i
}

func (p *parser) dayIn(day int) int {
	_, _, d := dateOf(day)
	return d
}

// yearAlone decides whether four digits are a year: after a preposition, at the
// end of a clause, or after "year".
func (p *parser) yearAlone(i int, ctx context) (match, int) {
	t, n := p.at(i), p.at(i+1)
	y := int(t.val)
	if t.is(flagGlued|flagOrdinal) || !plausibleYear(y) {
		return match{}, i
	}
	if n.kind == kSign && (n.val == '-' || n.val == ':') && p.tight(i+1) { // 2019-2021
		e := p.at(i + 2)
		if n.val == '-' && e.kind == kNumber && e.digits == 4 && p.tight(i+2) && e.val > t.val && plausibleYear(int(e.val)) && y >= 1800 && !(p.sign(i+3, '-') && p.tight(i+3)) {
			return match{span: span{yearSpan(y).from, yearSpan(int(e.val)).to}, grain: GrainYear, rel: Between, conf: 0.8}, i + 3
		}
		return match{}, i
	}
	conf := 0.0
	free := n.kind != kWord && n.kind != kUnit || p.ends(i+1)
	switch {
	case (ctx == ctxIn || ctx == ctxTime) && free:
		conf = 0.95
		if y < 1700 || y > 2100 {
			conf = 0.6
		}
	case (ctx == ctxIn || ctx == ctxTime || ctx == ctxOf) && y >= 1800 && y <= 2100:
		conf = 0.55
		if n.kind == kWord && ctx != ctxIn && p.s[n.end-1] == 's' && !free {
			conf = 0
		}
	case p.at(i-1).kind == kAround && free && y >= 1500 && y <= 2100:
		conf = 0.6
	case y >= 1900 && y <= 2099 && free && !p.numbers(p.at(i-1)):
		conf = 0.5
	}
	if conf == 0 || n.kind == kUnit {
		return match{}, i
	}
	return match{span: yearSpan(y), grain: GrainYear, conf: conf}, i + 1
}

// numbers reports whether what follows a word is a number of something.
func (p *parser) numbers(t *token) bool {
	if t.kind != kWord {
		return t.kind == kSign && t.val != '(' && t.val != ',' && t.val != '.' && t.val != '"'
	}
	switch p.s[t.start:t.end] {
	case "port", "room", "line", "page", "code", "error", "number", "no", "No", "id", "ID", "version", "chapter", "size", "status", "bytes", "Windows",
		"to", "than", "exactly", "only", "least", "most", "over", "under":
		return true
	}
	return false
}

// shortYear reads "'23" and "'90s" with the apostrophe at i.
func (p *parser) shortYear(i int, ctx context) (match, int) {
	t := p.at(i + 1)
	if t.kind != kNumber || t.digits != 2 || !p.tight(i+1) || t.is(flagGlued|flagOrdinal) {
		return match{}, i
	}
	if t.is(flagTens) {
		return p.decade(i+1, i+1, ctx)
	}
	if ctx != ctxIn && ctx != ctxTime && ctx != ctxOf || apostrophe(p.s, t.end) > 0 {
		return match{}, i
	}
	return match{span: yearSpan(fullYear(int(t.val))), grain: GrainYear, conf: 0.7}, i + 2
}

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
