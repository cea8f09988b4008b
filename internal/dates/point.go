package dates

// maxDepth bounds dates in dates: "the week before the Friday after …". It keeps
// an expression shorter than lookAhead and the work linear.
const maxDepth = 5

// point reads one date without a relation, and the time of day that follows it.
func (p *parser) point(i int, ctx context) (match, int) {
	j := i
	if p.at(j).kind == kThe {
		j++
	}
	if p.depth == maxDepth {
		return match{}, i
	}
	p.depth++
	m, k := p.date(j, i, ctx)
	p.depth--
	if u := p.at(k - 1); k-2 > j && u.kind == kUnit && u.val == uYear && (p.at(k-2).kind == kRel || p.at(k-2).kind == kPast) {
		m.relative = true // "May last year"
	}
	if !m.ok() {
		return m, i
	}
	if m.grain == GrainDay && m.rel == On {
		return p.clockAfter(m, k)
	}
	return m, k
}

// date dispatches on the token at i; the token at the is i or the article before.
func (p *parser) date(i, the int, ctx context) (match, int) {
	t := p.at(i)
	if t.is(flagGlued) && t.kind != kNumber {
		return match{}, i
	}
	switch t.kind {
	case kDay:
		return match{span: days(p.today+int(t.val), 1), grain: GrainDay, conf: 0.95, relative: true}, i + 1
	case kTonight:
		return match{span: partSpan(p.today, partNight), grain: GrainPart, conf: 0.9, relative: true}, i + 1
	case kRel, kPast:
		return p.relative(i)
	case kMonth:
		return p.monthFirst(i, ctx)
	case kWeekday:
		return p.weekdayFirst(i, ctx)
	case kHan:
		return p.hanToken(i)
	case kNumber:
		if p.beforeHan(t.end) {
			if m, next := p.hanToken(i); m.ok() {
				return m, next
			}
		}
		return p.numberFirst(i, the, ctx)
	case kFew, kHalf, kArticle:
		return p.quantity(i)
	case kSeason:
		return p.seasonFirst(i, the, ctx)
	case kHoliday, kThanks, kNew:
		return p.holidayFirst(i)
	case kQuarter:
		return p.quarterFirst(i, int(t.val), i+1)
	case kEdge:
		return p.edge(i)
	case kEvery:
		return p.every(i)
	case kEarlier:
		return p.earlier(i)
	case kRecent:
		return match{span: days(p.today-int(t.val), int(t.val)+1), grain: GrainMonth, conf: 0.4, relative: true}, i + 1
	case kOther:
		return p.theOther(i, the)
	case kUnit, kPart:
		return p.unitFirst(i, the, ctx)
	case kNoon:
		if ctx == ctxAt || ctx == ctxTime {
			return p.daily(dayClock(p.today, int(t.val), 0, 3600), 0.5), i + 1
		}
	case kSign:
		if t.val == '\'' {
			return p.shortYear(i, ctx)
		}
	}
	return match{}, i
}

// hanToken reads a Chinese date that starts at token i.
func (p *parser) hanToken(i int) (match, int) {
	m, end := p.hanPoint(p.at(i).start)
	if !m.ok() {
		return m, i
	}
	m.end = end
	return m, p.tokenAfter(i, end)
}

// tokenAfter returns the first token after i that starts at byte end or later.
func (p *parser) tokenAfter(i, end int) int {
	for i++; p.at(i).kind != kEnd && p.at(i).start < end; {
		i++
	}
	return i
}

// relative reads last, this and next with what they stand before.
func (p *parser) relative(i int) (match, int) {
	t := p.at(i)
	rel, j := int(t.val), i+1
	past := t.kind == kPast
	switch n := p.at(j); { // "this past weekend", "this coming Friday"
	case t.kind == kRel && rel == 0 && n.kind == kPast:
		rel, past, j = -1, true, j+1
	case t.kind == kRel && rel == 0 && n.kind == kRel && n.val != 0:
		rel, j = int(n.val), j+1
	}
	if rel != 0 {
		if c, k := p.count(j); c.halves > 0 {
			u := p.at(k)
			if p.at(k+1).kind == kOf { // "the last two days of the sprint"
				return match{}, i
			}
			if u.kind == kUnit && u.val != uSecond && (c.halves > 2 || c.loose) {
				return p.period(c, int(u.val), rel), k + 1
			}
		}
	}
	var m match
	n := p.at(j)
	if n.is(flagGlued) || n.is(flagPlural) {
		return match{}, i
	}
	switch n.kind {
	case kUnit:
		if rel == -1 && p.at(j+1).kind == kOf || rel == -1 && relatesTo(p.at(j+1)) {
			if m, k := p.lastOf(j); m.ok() {
				return m, k
			}
		}
		m = p.unitAround(int(n.val), rel, past && t.kind == kPast)
	case kWeekday:
		if rel == -1 && (p.at(j+1).kind == kOf || relatesTo(p.at(j+1))) {
			if m, k := p.lastOf(j); m.ok() {
				return m, k
			}
		}
		m = p.weekdayAround(int(n.val), rel)
	case kMonth:
		m = p.monthAround(int(n.val), rel)
	case kSeason:
		m = p.seasonAround(int(n.val), rel)
	case kQuarter:
		m = p.quarterAround(int(n.val), rel)
	case kHoliday, kThanks, kNew:
		if h, k := p.holidayName(j); h >= 0 {
			return p.holidayAround(h, rel), k
		}
	case kPart:
		return p.partAround(j, int(n.val), rel)
	}
	if !m.ok() {
		return m, i
	}
	return m, j + 1
}

func relatesTo(t *token) bool { return t.kind == kBefore || t.kind == kAfter }

// lastOf reads "week of May" and "Friday before 9 June" after "last".
func (p *parser) lastOf(j int) (match, int) {
	n := p.at(j)
	if p.at(j+1).kind == kOf {
		whole, k := p.point(j+2, ctxTime)
		if !whole.ok() || whole.grain < GrainMonth {
			return match{}, j
		}
		return within(whole, n, -1), k
	}
	return p.beside(n, count{halves: 2}, j+1)
}

// partAround reads "last night", "this morning".
func (p *parser) partAround(j, part, rel int) (match, int) {
	day := p.today
	switch {
	case rel == -1 && part >= partEvening:
		day--
	case rel != 0:
		return match{}, j
	}
	m := match{span: partSpan(day, part), grain: GrainPart, conf: 0.9, relative: true}
	if rel == 0 && part == partNight {
		m.alt = partSpan(day-1, part)
	}
	return m, j + 1
}
