package dates

// sign reports whether token i is the sign c.
func (p *parser) sign(i int, c int32) bool {
	t := p.at(i)
	return t.kind == kSign && t.val == c
}

// tight reports whether no white space stands before token i.
func (p *parser) tight(i int) bool { return !p.at(i).is(flagSpace) }

// yearAt reads a year that belongs to the date before it: "2023", "'23", "of
// last year". With comma, one may stand before it.
func (p *parser) yearAt(i int, comma bool) (year, next int) {
	j := i
	if comma && p.sign(j, ',') || p.at(j).kind == kOf {
		j++
	}
	t := p.at(j)
	switch {
	case t.kind == kNumber && t.digits == 4 && !t.is(flagOrdinal|flagGlued|flagTens|flagSpelled) && plausibleYear(int(t.val)):
		if n := p.at(j + 1); n.kind == kSign && n.val == ':' && p.tight(j+1) && p.at(j+2).kind == kNumber && p.tight(j+2) {
			return 0, i
		}
		return int(t.val), j + 1
	case t.kind == kSign && t.val == '\'':
		if y := p.at(j + 1); y.kind == kNumber && y.digits == 2 && p.tight(j+1) && !y.is(flagOrdinal|flagTens) {
			return fullYear(int(y.val)), j + 2
		}
	case (t.kind == kRel || t.kind == kPast) && p.at(j+1).kind == kUnit && p.at(j+1).val == uYear && !p.at(j+1).is(flagPlural):
		return p.year + int(t.val), j + 2
	}
	return 0, i
}

func plausibleYear(y int) bool { return y >= 1000 && y <= maxYear }

// fullYear reads two digits as the years 1950 to 2049.
func fullYear(y int) int {
	if y < 50 {
		return 2000 + y
	}
	return 1900 + y
}

// monthFirst reads "May 8th, 2023", "May 2023", "May 3-5" and "May".
func (p *parser) monthFirst(i int, ctx context) (match, int) {
	t := p.at(i)
	month, j := int(t.val), i+1
	if t.is(flagShort) && p.sign(j, '.') && p.tight(j) {
		j++
	}
	if m, k := p.dayOfMonth(i, j, month, ctx); m.ok() {
		return m, k
	}
	k := j
	if p.sign(k, '-') && p.tight(k) {
		k++
	}
	if y, next := p.yearAt(k, true); next > k {
		return match{span: monthSpan(y, month), grain: GrainMonth, conf: 0.98}, next
	}
	conf := p.bareMonth(i, ctx)
	if conf == 0 {
		return match{}, i
	}
	m := p.yearly(func(y int) span { return monthSpan(y, month) }, GrainMonth, conf)
	return m, j
}

// yearly resolves what has no year to the latest that has begun or, in
// a message, to the nearest: people write of what they plan, too.
func (p *parser) yearly(of func(y int) span, grain Grain, conf float64) match {
	m := match{grain: grain, repeat: Yearly, others: 0.8, conf: conf}
	m.span, m.alt = p.nearest(of)
	if p.plans && !m.alt.empty() && p.now >= m.span.to && m.alt.from-p.now < p.now-m.span.to {
		m.span, m.alt = m.alt, m.span
	}
	return m
}

// bareMonth says how likely a month's name without day and year is a month.
func (p *parser) bareMonth(i int, ctx context) float64 {
	t, next := p.at(i), p.at(i+1)
	sure := ctx == ctxIn || ctx == ctxTime || ctx == ctxOf
	if p.sign(i+1, '-') && p.tight(i+1) && p.tight(i+2) && next.kind == kSign && p.at(i+2).kind == kWord {
		return 0
	}
	ambig := t.is(flagAmbig) && !(t.val == 8 && t.is(flagUpper) && !t.is(flagShort))                                    // august is rare
	if j := i + 1; next.kind == kTo || next.kind == kUntil || next.kind == kAnd || next.kind == kOr || p.sign(j, '-') { // May to July
		if e := p.at(j + 1); e.kind == kMonth && (t.is(flagUpper) || !t.is(flagAmbig)) && (e.is(flagUpper) || !e.is(flagAmbig)) {
			return 0.85
		}
	}
	switch {
	case !ambig && sure:
		return 0.9
	case t.val == 4 || t.val == 6: // also names of people
		return 0.6
	case !ambig:
		return 0.7
	case sure && (next.kind != kWord || t.is(flagUpper)) && (t.is(flagUpper) || !t.is(flagShort)):
		return 0.85
	case sure && ctx != ctxOf && !t.is(flagShort):
		return 0.6
	case !t.is(flagUpper) || t.is(flagLine) || p.startsSentence(i):
		return 0
	case next.kind == kWord && !p.verbLike(next):
		return 0.45
	}
	return 0.5
}

// verbLike reports whether a word is one after which "May" before it was a verb.
func (p *parser) verbLike(t *token) bool {
	switch p.s[t.start:t.end] {
	case "I", "we", "you", "be", "have", "it", "not":
		return true
	}
	return false
}

func (p *parser) startsSentence(i int) bool {
	t := p.at(i - 1)
	return t.kind == kEnd || t.kind == kSign && (t.val == '.' || t.val == '!' || t.val == '?' || t.val == ':' || t.val == '"')
}

// dayOfMonth reads the day, or days, and the year after a month at i.
func (p *parser) dayOfMonth(i, j, month int, ctx context) (match, int) {
	t, k, dash := p.at(i), j, false
	if p.sign(k, '-') && p.tight(k) && p.tight(k+1) {
		k, dash = k+1, true
	}
	if p.at(k).kind == kThe {
		k++
	}
	d, k2 := p.dayNumber(k, dash)
	if d == 0 {
		return match{}, i
	}
	k = k2
	last := 0
	if dash {
		if !p.sign(k, '-') {
			return match{}, i
		}
		k++
		y := p.at(k)
		if y.kind != kNumber || y.digits != 4 || !plausibleYear(int(y.val)) {
			return match{}, i
		}
		return p.dated(int(y.val), month, d, 0), k + 1
	}
	if p.sign(k, '-') || p.at(k).kind == kTo || p.at(k).kind == kAnd {
		if e, next := p.dayNumber(k+1, true); e > d && !p.namesMonth(next) {
			last, k = e, next
		}
	}
	if y, next := p.yearAt(k, true); next > k {
		return p.dated(y, month, d, last), next
	}
	conf := 0.9
	switch {
	case t.is(flagAmbig) && !t.is(flagUpper) && ctx == ctxNone && !p.at(k2-1).is(flagOrdinal):
		if p.at(k).kind == kWord || p.at(k).kind == kUnit {
			return match{}, i
		}
		conf = 0.6
	case !t.is(flagUpper) && ctx == ctxNone && p.at(k).kind == kUnit:
		return match{}, i
	}
	m := p.yearly(func(y int) span { return datedSpan(y, month, d, last) }, GrainDay, conf)
	if last > 0 {
		m.rel = Between
	}
	return m, k
}

// namesMonth reports whether what stands at i makes a number before it the day
// of another month.
func (p *parser) namesMonth(i int) bool {
	return p.at(i).kind == kMonth || p.at(i).kind == kOf && p.at(i+1).kind == kMonth
}

// dayNumber reads 1 to 31, "8th", "eighth" or "twenty-first".
func (p *parser) dayNumber(i int, glued bool) (d, next int) {
	t := p.at(i)
	if t.kind != kNumber || t.is(flagTens|flagWide|flagComma) || t.digits > 2 || t.is(flagGlued) && !glued {
		return 0, i
	}
	d, next = int(t.val), i+1
	if t.is(flagSpelled) && !t.is(flagOrdinal) && d >= 20 {
		k := next
		if p.sign(k, '-') {
			k++
		}
		if u := p.at(k); u.kind == kNumber && u.is(flagSpelled) && u.is(flagOrdinal) && u.val < 10 {
			d, next = d+int(u.val), k+1
		}
	}
	if n := p.at(next); n.kind == kMeridiem && !n.is(flagAmbig) || n.kind == kSign && (n.val == ':' || n.val == '%') && p.tight(next) && p.at(next+1).kind == kNumber {
		return 0, i
	}
	if d < 1 || d > 31 {
		return 0, i
	}
	return d, next
}

// datedSpan returns a day, or the days d to last, or nothing if there is no such day.
func datedSpan(y, month, d, last int) span {
	if last == 0 {
		last = d
	}
	if n := monthDays(y, month); d > n || last > n || d < 1 {
		return span{}
	}
	return days(dayOf(y, month, d), last-d+1)
}

func (p *parser) dated(y, month, d, last int) match {
	m := match{span: datedSpan(y, month, d, last), grain: GrainDay, conf: 1}
	if m.span.empty() {
		return match{}
	}
	if last > 0 {
		m.rel = Between
	}
	return m
}
