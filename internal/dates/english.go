package dates

// weekdayFirst reads "Monday, May 8th", "Tuesday last week", "Tuesdays" and
// "Tuesday".
func (p *parser) weekdayFirst(i int, ctx context) (match, int) {
	t := p.at(i)
	w, j := int(t.val), i+1
	if t.is(flagPlural) {
		day := p.lastWeekday(w, p.today+1)
		return match{span: days(day, 1), grain: GrainDay, repeat: Weekly, others: 1, conf: 0.9}, j
	}
	if t.is(flagShort) && p.sign(j, '.') && p.tight(j) {
		j++
	}
	k := j
	open := p.sign(k, '(')
	if p.sign(k, ',') || open {
		k++
	}
	the := k
	if p.at(k).kind == kThe {
		k++
	}
	switch n := p.at(k); n.kind {
	case kMonth, kNumber:
		if m, next := p.date(k, the, ctxOn); m.ok() && m.grain == GrainDay && m.rel == On {
			if m.repeat == Yearly || m.repeat == Monthly {
				m = p.onWeekday(m, w)
			}
			if open && p.sign(next, ')') {
				next++
			}
			return m, next
		}
	}
	if relatesTo(p.at(j)) {
		if m, next := p.beside(t, count{halves: 2}, j); m.ok() {
			return m, next
		}
	}
	if k = j; p.at(k).kind == kOf {
		k++
	}
	if r := p.at(k); (r.kind == kRel || r.kind == kPast) && p.at(k+1).kind == kUnit && p.at(k+1).val == uWeek && !p.at(k+1).is(flagPlural) {
		return match{span: days(monday(p.today)+7*int(r.val)+w, 1), grain: GrainDay, conf: 0.95, relative: true}, k + 2
	}
	conf := 0.85
	if t.is(flagAmbig) {
		if ctx != ctxOn && ctx != ctxTime || !t.is(flagUpper) {
			return match{}, i
		}
		conf = 0.6
	}
	day := p.lastWeekday(w, p.today)
	return match{span: days(day, 1), alt: days(p.lastWeekday(w, p.today+8), 1), grain: GrainDay, repeat: Weekly, others: 0.4, conf: conf}, j
}

// onWeekday moves a day without a year, or a month, to the latest one in which
// it falls on the weekday that the text says, if that is not long ago, or else to
// the coming one.
func (p *parser) onWeekday(m match, w int) match {
	for n := range 12 {
		for _, s := range [2]span{m.span.shift(m.repeat, -n), m.alt} {
			if !s.empty() && weekday(s.from.day()) == w {
				m.span, m.alt, m.others = s, span{}, 0.3
				return m
			}
		}
	}
	return m
}

// seasonFirst reads "summer of 2022", "winter '21", "in the spring".
func (p *parser) seasonFirst(i, the int, ctx context) (match, int) {
	t := p.at(i)
	season := int(t.val)
	if y, next := p.yearAt(i+1, true); next > i+1 {
		m := match{span: seasonSpan(y, season), grain: GrainSeason, conf: 0.95}
		if season == 3 {
			m.alt = seasonSpan(y-1, season)
		}
		return m, next
	}
	conf := 0.5
	switch {
	case t.is(flagPlural):
		conf = 0.8
	case ctx == ctxIn || ctx == ctxTime || ctx == ctxOn:
		conf = 0.8
		if t.is(flagAmbig) && (the == i && t.is(flagUpper) || p.at(i+1).kind == kWord && !p.ends(i+1)) {
			conf = 0.5
		}
	case t.is(flagAmbig):
		return match{}, i
	}
	if p.sign(i+1, '-') && p.tight(i+1) {
		return match{}, i
	}
	m := p.yearly(func(y int) span { return seasonSpan(y, season) }, GrainSeason, conf)
	if t.is(flagPlural) {
		m.others = 1
	}
	return m, i + 1
}

// ends reports whether the word at i starts a new clause rather than naming what
// the word before it describes.
func (p *parser) ends(i int) bool {
	t := p.at(i)
	if t.kind != kWord {
		return t.kind != kUnit
	}
	switch p.s[t.start:t.end] {
	case "when", "was", "is", "were", "are", "did", "do", "does", "with", "for", "but", "that", "which", "while", "as", "he", "she", "we", "I",
		"they", "you", "it", "her", "his", "my", "our", "their", "has", "had", "have", "will", "would", "because", "if", "so", "where", "who",
		"what", "how", "me", "him", "them", "us", "then", "there", "not", "can", "could", "onwards", "onward":
		return true
	}
	return false
}

// quarterFirst reads the year after a quarter.
func (p *parser) quarterFirst(i, q, j int) (match, int) {
	if y, next := p.yearAt(j, true); next > j {
		return match{span: quarterSpan(y, q), grain: GrainQuarter, conf: 0.95}, next
	}
	return p.yearly(func(y int) span { return quarterSpan(y, q) }, GrainQuarter, 0.7), j
}

// edge reads "early July", "the end of the year", "mid-2022".
func (p *parser) edge(i int) (match, int) {
	t := p.at(i)
	j := i + 1
	noun := t.end-t.start > 5 || t.end-t.start == 3 && p.s[t.end-1] == 'd' && t.val == 2 // beginning, middle; end
	if t.val == 0 && p.s[t.end-1] == 't' {                                               // start
		noun = true
	}
	switch {
	case p.at(j).kind == kOf:
		j++
	case noun:
		return match{}, i
	case p.sign(j, '-') || p.at(j).kind == kIn:
		j++
	}
	if p.at(j).kind == kThe && p.at(j+1).kind == kUnit && !p.at(j+1).is(flagPlural) && p.at(j+2).kind != kOf {
		if m := p.unitAround(int(p.at(j+1).val), 0, false); m.ok() {
			m = edgeOf(m, int(t.val))
			m.conf *= 0.8
			return m, j + 2
		}
	}
	ctx := ctxIn
	if n := p.at(j); n.kind == kNumber && n.is(flagGlued) && j == i+2 && p.sign(i+1, '-') && n.digits == 4 && plausibleYear(int(n.val)) {
		return edgeOf(match{span: yearSpan(int(n.val)), grain: GrainYear, conf: 0.9}, int(t.val)), j + 1
	}
	m, k := p.point(j, ctx)
	if !m.ok() || m.rel != On {
		return match{}, i
	}
	if m.grain >= GrainWeek {
		m = edgeOf(m, int(t.val))
	}
	return m, k
}

// edgeOf takes the first, middle or last third.
func edgeOf(m match, third int) match {
	first, end := m.span.from.day(), m.span.to.day()
	n := end - first
	cut := [4]int{0, n / 3, n - n/3, n}
	if m.grain == GrainMonth {
		cut = [4]int{0, 10, 20, n}
	}
	m.alt = span{}
	m.span = days(first+cut[third], cut[third+1]-cut[third])
	switch m.grain {
	case GrainDecade:
		m.grain = GrainYear
	case GrainYear:
		m.grain = GrainSeason
	case GrainSeason, GrainQuarter:
		m.grain = GrainMonth
	case GrainMonth:
		m.grain = GrainWeek
	case GrainWeek:
		m.grain = GrainDay
	}
	return m
}

// every reads "every Tuesday", "each summer", "every morning".
func (p *parser) every(i int) (match, int) {
	t := p.at(i + 1)
	m := match{others: 1, conf: 0.85}
	switch t.kind {
	case kWeekday:
		m.span, m.grain, m.repeat = days(p.lastWeekday(int(t.val), p.today+1), 1), GrainDay, Weekly
	case kMonth, kSeason:
		var next int
		if t.kind == kMonth {
			m, next = p.monthFirst(i+1, ctxTime)
		} else {
			m, next = p.seasonFirst(i+1, i+1, ctxTime)
		}
		if m.repeat != Yearly {
			return match{}, i
		}
		m.others = 1
		return m, next
	case kPart:
		m = p.daily(partSpan(p.today, int(t.val)), 0.5)
		m.others = 1
	case kHoliday, kThanks, kNew:
		h, next := p.holidayName(i + 1)
		if h < 0 {
			return match{}, i
		}
		m = p.yearly(h.span, h.grain(), 0.85)
		m.others = 1
		return m, next
	default:
		return match{}, i
	}
	return m, i + 2
}

// earlier reads "earlier this year", "later this month", "earlier today".
func (p *parser) earlier(i int) (match, int) {
	r, u := p.at(i+1), p.at(i+2)
	m := match{}
	switch {
	case r.kind == kDay && r.val == 0:
		m, u = match{span: days(p.today, 1), grain: GrainDay, conf: 0.9, relative: true}, r
	case r.kind == kRel && r.val == 0 && u.kind == kUnit && !u.is(flagPlural):
		m = p.unitAround(int(u.val), 0, false)
	}
	if !m.ok() {
		return m, i
	}
	next := i + 3
	if u == r {
		next = i + 2
	}
	whole := m.span
	if p.at(i).val < 0 {
		m.span.to = min(m.span.to, dayCivil(p.today+1))
	} else {
		m.span.from = max(m.span.from, dayCivil(p.today))
	}
	if m.span.empty() {
		m.span = whole
	}
	m.conf = 0.85
	return m, next
}

// theOther reads "the other day".
func (p *parser) theOther(i, the int) (match, int) {
	u := p.at(i + 1)
	if the == i || u.is(flagPlural|flagOwner) {
		return match{}, i
	}
	switch {
	case u.kind == kUnit && u.val == uDay, u.kind == kPart:
		return match{span: days(p.today-7, 7), grain: GrainDay, conf: 0.6, relative: true}, i + 2
	case u.kind == kUnit && u.val == uWeek:
		return match{span: days(p.today-21, 21), grain: GrainWeek, conf: 0.6, relative: true}, i + 2
	}
	return match{}, i
}

// unitFirst reads "week of May 5", "day before yesterday", "month of May",
// "evening of 7 July", "the weekend" and "year 2023".
func (p *parser) unitFirst(i, the int, ctx context) (match, int) {
	u := p.at(i)
	if u.is(flagPlural) {
		if u.kind == kPart && ctx != ctxNone {
			m := p.daily(partSpan(p.today, int(u.val)), 0.4)
			m.others = 1
			return m, i + 1
		}
		return match{}, i
	}
	switch n := p.at(i + 1); {
	case relatesTo(n), n.kind == kPast && p.at(i+2).kind == kTo:
		return p.beside(u, count{halves: 2}, i+1)
	case n.kind == kOf:
		if whole, k := p.point(i+2, ctxTime); whole.ok() && whole.rel == On {
			return p.containing(whole, u), k
		}
	case u.kind == kUnit && u.val == uYear && n.kind == kNumber:
		if y, next := p.yearAt(i+1, false); next > i+1 {
			return match{span: yearSpan(y), grain: GrainYear, conf: 0.95}, next
		}
	}
	switch {
	case u.kind == kUnit && u.val == uWeekend && the < i && ctx != ctxNone && ctx != ctxOf:
		first := lastWeekend(p.today)
		if weekday(p.today) >= 5 {
			first += 7
		}
		return match{span: days(first, 2), alt: days(first+7, 2), grain: GrainDay, repeat: Weekly, others: 0.3, conf: 0.6}, i + 1
	case u.kind == kPart && (ctx == ctxIn && the < i || ctx == ctxAt && u.val == partNight):
		return p.daily(partSpan(p.today, int(u.val)), 0.4), i + 1
	}
	return match{}, i
}

// containing resolves the unit "of" a date: the week of a day, the morning of
// a day, the month of May, the year of 2023.
func (p *parser) containing(m match, u *token) match {
	day := m.span.from.day()
	switch {
	case u.kind == kPart && m.grain == GrainDay:
		m.span, m.grain = partSpan(day, int(u.val)), GrainPart
	case u.kind == kUnit && u.val == uWeek && m.grain <= GrainDay:
		m.span, m.grain = days(monday(day), 7), GrainWeek
	case u.kind == kUnit && u.val == uWeekend && m.grain <= GrainDay:
		m.span, m.grain = days(monday(day)+5, 2), GrainDay
	case u.kind == kUnit && int(u.val) == uMonth && m.grain == GrainMonth, u.kind == kUnit && u.val == uYear && m.grain == GrainYear:
	default:
		return match{}
	}
	if u.kind == kPart || u.val <= uWeek {
		m.alt = span{}
	}
	return m
}

// within resolves "the last week of May", "the second Monday of May" (n 1 to 5,
// or -1 for the last).
func within(m match, u *token, n int) match {
	first, end := m.span.from.day(), m.span.to.day()
	size, grain, start := 1, GrainDay, first
	switch {
	case u.kind == kWeekday:
		start = first + (int(u.val)-weekday(first)+7)%7
		if n < 0 {
			start = end - 1 - (weekday(end-1)-int(u.val)+7)%7
		}
	case u.kind == kUnit && u.val == uWeekend:
		size, start = 2, first+(5-weekday(first)+7)%7
		if n < 0 {
			start = end - 1 - (weekday(end-1)-5+7)%7
		}
	case u.kind == kUnit && u.val == uWeek:
		size, grain = 7, GrainWeek
		if n < 0 {
			start = end - 7
		}
	case u.kind == kUnit && u.val == uDay:
		if n < 0 {
			start = end - 1
		}
	default:
		return match{}
	}
	if n > 0 {
		step := 7
		if u.kind == kUnit && u.val == uDay {
			step = 1
		}
		start += step * (n - 1)
	}
	if start >= end {
		return match{}
	}
	m.alt = span{}
	m.span, m.grain = days(start, size), grain
	m.conf *= 0.95
	return m
}
