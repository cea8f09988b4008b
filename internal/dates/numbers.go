package dates

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
