package dates

import "unicode/utf8"

// hanPart reads a part of the day, or returns -1.
func (p *parser) hanPart(i int) (part, next int) {
	r, _ := utf8.DecodeRuneInString(p.s[i:])
	switch r {
	case '凌', '半', '后', '清', '一', '早', '上', '中', '正', '午', '下', '傍', '晚', '夜', '深':
	default:
		return -1, i
	}
	j := i
	switch {
	case p.eat(&j, "凌晨", "半夜", "后半夜"):
		return partEarly, j
	case p.eat(&j, "清晨", "清早", "一大早"):
		return partDawn, j
	case p.eat(&j, "早上", "早晨", "上午", "早"):
		return partMorning, j
	case p.eat(&j, "中午", "正午", "午间"):
		return partNoon, j
	case p.eat(&j, "下午", "午后"):
		return partAfternoon, j
	case p.eat(&j, "傍晚"):
		return partEvening, j
	case p.eat(&j, "晚上", "夜里", "夜间", "夜晚", "深夜", "午夜", "晚间", "晚"):
		return partNight, j
	}
	return -1, i
}

// hanClock reads 八点半, 8点20分, 19:30 at byte i; pm says that it is after noon.
func (p *parser) hanClock(i, part int) (hour, minute, width int, next int) {
	h, _, j := p.hanNumber(i)
	if j == i || h > 24 {
		return 0, 0, 0, i
	}
	width = 3600
	switch {
	case j+2 < len(p.s) && (p.s[j] == ':' || p.starts(j, "：")):
		p.eat(&j, ":", "：")
		m, _, k := p.hanNumber(j)
		if k == j || m > 59 || k-j != 2 {
			return 0, 0, 0, i
		}
		if k+2 < len(p.s) && p.s[k] == ':' && isDigit(p.s[k+1]) && isDigit(p.s[k+2]) {
			k += 3
		}
		minute, width, j = m, 60, k
	case !p.starts(j, "时间", "时候", "时期", "时代") && p.eat(&j, "点钟", "点整", "点", "时"):
		switch {
		case p.eat(&j, "半"):
			minute, width = 30, 60
		case p.eat(&j, "一刻"):
			minute, width = 15, 60
		case p.eat(&j, "三刻"):
			minute, width = 45, 60
		default:
			if m, _, k := p.hanNumber(j); k > j && m < 60 && p.eat(&k, "分") {
				minute, width, j = m, 60, k
			}
		}
	default:
		return 0, 0, 0, i
	}
	switch {
	case h < 12 && (part == partAfternoon || part == partEvening || part == partNight && h > 4), h < 3 && part == partNoon:
		h += 12
	case h == 24, h == 12 && (part == partNight || part == partEarly):
		h = 0
		if part != partEarly {
			h = 24
		}
	}
	return h, minute, width, j
}

// hanClockIn refines a day by a part that was read, and the time after it.
func (p *parser) hanClockIn(m match, part, i int) (match, int) {
	day, at := m.span.from.day(), i
	p.blank(&at)
	if h, mi, width, j := p.hanClock(at, part); j > at {
		m = inPart(m, dayClock(day, h, mi, width))
		m.grain = GrainHour
		return m, j
	}
	return inPart(m, partSpan(day, part)), i
}

// hanClockAfter reads the weekday, part and time after a day.
func (p *parser) hanClockAfter(m match, i int) (match, int) {
	day := m.span.from.day()
	if m.span != days(day, 1) {
		return m, i
	}
	j := i
	p.blank(&j)
	if k := j; p.eat(&k, "(", "（", "") && p.eat(&k, "星期", "周", "礼拜") && p.hanWeekday(&k) == weekday(day) {
		p.eat(&k, ")", "）")
		i, j = k, k
		p.blank(&j)
	}
	p.eat(&j, "的", "，", ",")
	p.blank(&j)
	if part, k := p.hanPart(j); part >= 0 {
		return p.hanClockIn(m, part, k)
	}
	if h, mi, width, k := p.hanClock(j, -1); k > j {
		m = inPart(m, dayClock(day, h, mi, width))
		m.grain = GrainHour
		return m, k
	}
	return m, i
}

// hanClockAlone reads 晚上八点, 每天早上, 上午.
func (p *parser) hanClockAlone(i int) (match, int) {
	j, others := i, 0.5
	if p.eat(&j, "每天") {
		others = 1
	}
	part, k := p.hanPart(j)
	if part < 0 {
		return match{}, i
	}
	if h, mi, width, e := p.hanClock(k, part); e > k {
		m := p.daily(dayClock(p.today, h, mi, width), 0.7)
		m.others = others
		return m, e
	}
	if k-j == len("晚") { // 早 and 晚 alone are ordinary words
		return match{}, i
	}
	m := p.daily(partSpan(p.today, part), 0.3)
	m.others = others
	return m, k
}
