package dates

// partSpan returns a part of a day; the night ends in the next.
func partSpan(day, part int) span {
	hours := [...][2]int{
		partMorning: {5, 12}, partNoon: {11, 14}, partAfternoon: {12, 18}, partEvening: {17, 23},
		partNight: {18, 30}, partEarly: {0, 6}, partDawn: {5, 8},
	}
	h := hours[part]
	return span{dayCivil(day) + civil(h[0])*3600, dayCivil(day) + civil(h[1])*3600}
}

func dayClock(day, hour, minute, width int) span {
	from := dayCivil(day) + civil(hour*3600+minute*60)
	return span{from, from + civil(width)}
}

// daily resolves a time of day to its latest occurrence.
func (p *parser) daily(s span, conf float64) match {
	for s.from > p.now {
		s = s.shift(Daily, -1)
	}
	grain := GrainPart
	if s.to-s.from <= 3600 {
		grain = GrainHour
	}
	return match{span: s, grain: grain, repeat: Daily, others: 0.5, conf: conf}
}

// clock reads "7 pm", "7:30", "7 p.m.", "19:30:00", "7 o'clock", "noon". exact says
// that it is more than a number. width is an hour or a minute, in seconds.
func (p *parser) clock(i int) (hour, minute, width int, exact bool, next int) {
	t := p.at(i)
	if t.kind == kNoon {
		return int(t.val), 0, 3600, true, i + 1
	}
	if t.kind != kNumber || t.is(flagOrdinal|flagTens|flagComma|flagWide) || t.digits > 2 || t.val > 24 {
		return 0, 0, 0, false, i
	}
	hour, width, next = int(t.val), 3600, i+1
	if p.sign(next, ':') && p.tight(next) && p.tight(next+1) {
		m := p.at(next + 1)
		if m.kind != kNumber || m.digits != 2 || m.val > 59 || m.is(flagSpelled) {
			return 0, 0, 0, false, i
		}
		minute, width, exact, next = int(m.val), 60, true, next+2
		if s := p.at(next + 1); p.sign(next, ':') && p.tight(next) && s.kind == kNumber && s.digits == 2 && p.tight(next+1) {
			next += 2
		}
	} else if t.is(flagGlued) {
		return 0, 0, 0, false, i
	}
	switch m := p.at(next); {
	case m.kind == kMeridiem:
		if hour > 12 || hour == 0 && !exact {
			break
		}
		hour, exact, next = hour%12+int(m.val), true, next+1
	case m.kind == kOclock:
		exact, next = true, next+1
	case m.end-m.start == 1 && m.kind != kNumber && p.sign(next+1, '.') && p.tight(next+1): // p.m.
		c := p.s[m.start] | 0x20
		n := p.at(next + 2)
		if (c == 'p' || c == 'a') && n.end-n.start == 1 && p.s[n.start]|0x20 == 'm' && hour <= 12 {
			if hour %= 12; c == 'p' {
				hour += 12
			}
			exact, next = true, next+3
			if p.sign(next, '.') && p.tight(next) {
				next++
			}
		}
	}
	if hour > 23 {
		return 0, 0, 0, false, i
	}
	return hour, minute, width, exact, next
}

// clockFirst reads "7 pm", "1:56 pm on 8 May, 2023" and "7 pm yesterday".
func (p *parser) clockFirst(i int, ctx context) (match, int) {
	h, mi, width, exact, j := p.clock(i)
	if j == i || !exact {
		return match{}, i
	}
	k := j
	if p.at(k).kind == kOn {
		k++
	}
	if t := p.at(k); k > j || t.kind == kDay || t.kind == kRel {
		if m, next := p.date(k, k, ctxOn); m.ok() && m.grain == GrainDay && m.rel == On {
			m.span = dayClock(m.span.from.day(), h, mi, width)
			m.grain, m.alt = GrainHour, span{}
			return m, next
		}
	}
	conf := 0.7
	if !p.hasMeridiem(j - 1) {
		if ctx != ctxAt && ctx != ctxTime {
			return match{}, i
		}
		conf = 0.6
	}
	return p.daily(dayClock(p.today, h, mi, width), conf), j
}

func (p *parser) hasMeridiem(i int) bool {
	t := p.at(i)
	return t.kind == kMeridiem || t.kind == kOclock || t.kind == kNoon || t.kind == kSign || t.end-t.start == 1 && p.s[t.start]|0x20 == 'm'
}

// clockAfter refines a day by the time or part of day that follows it: "at 7 pm",
// "in the evening", "morning".
func (p *parser) clockAfter(m match, i int) (match, int) {
	day := m.span.from.day()
	if m.span != days(day, 1) {
		return m, i
	}
	j, at := i, false
	if p.sign(j, ',') {
		j++
	}
	switch p.at(j).kind {
	case kAt:
		at, j = true, j+1
		if p.at(j).kind == kAround {
			j++
		}
	case kIn:
		if p.at(j+1).kind == kThe && p.at(j+2).kind == kPart {
			return inPart(m, partSpan(day, int(p.at(j+2).val))), j + 3
		}
		return m, i
	case kPart:
		if t := p.at(j); j == i && !t.is(flagPlural|flagGlued) {
			return inPart(m, partSpan(day, int(t.val))), j + 1
		}
		return m, i
	}
	if t := p.at(j); at && t.kind == kPart && t.val == partNight {
		return inPart(m, partSpan(day, partNight)), j + 1
	}
	h, mi, width, exact, next := p.clock(j)
	if next == j || !exact && !at || !exact && p.at(next).kind == kUnit {
		return m, i
	}
	m.span, m.grain = dayClock(day, h, mi, width), GrainHour
	m.alt = span{}
	return m, next
}

func inPart(m match, s span) match {
	day := m.span.from.day()
	if !m.alt.empty() {
		m.alt = span{s.from + m.alt.from - dayCivil(day), s.to + m.alt.from - dayCivil(day)}
	}
	m.span, m.grain = s, GrainPart
	return m
}
