package dates

import "strings"

// hanYear reads a year, and what of it is meant: 2023年5月8日, 去年夏天, 今年年底.
func (p *parser) hanYear(i int) (match, int) {
	y, j, conf, named := 0, i, 0.95, false
	switch {
	case p.eat(&j, "大前年"):
		y = p.year - 3
	case p.eat(&j, "今年", "本年度", "本年", "这一年"):
		y = p.year
	case p.eat(&j, "去年", "上一年", "上年"):
		y = p.year - 1
	case p.eat(&j, "前年"):
		y = p.year - 2
	case p.eat(&j, "明年", "下一年", "来年"):
		y = p.year + 1
	case p.eat(&j, "后年"):
		y = p.year + 2
	default:
		v, digits, k := p.hanNumber(i)
		if k == i {
			return match{}, i
		}
		named = true
		p.blank(&k)
		if !p.eat(&k, "年度", "年") || p.starts(k, "代", "龄", "级", "轻", "纪", "薪") {
			return match{}, i
		}
		y, j, conf = v, k, 1
		switch {
		case digits == 4 || digits == 0 && v >= 1000:
		case digits == 2 && p.hanMonthFollows(k):
			y, conf = fullYear(v), 0.8
		default:
			return match{}, i
		}
		if !plausibleYear(y) || p.starts(k, "前", "后", "间", "以前", "之前", "来") && y < 1200 {
			return match{}, i
		}
	}
	p.eat(&j, "的")
	p.blank(&j)
	if m, k := p.hanInYear(j, y); m.ok() {
		m.conf, m.relative = min(m.conf, conf), !named
		return m, k
	}
	if p.s[j-1] == ' ' || strings.HasSuffix(p.s[i:j], "的") { // nothing of the year followed
		j = i + len(strings.TrimSuffix(strings.TrimRight(p.s[i:j], " "), "的"))
	}
	return match{span: yearSpan(y), grain: GrainYear, conf: conf, relative: !named}, j
}

func (p *parser) hanMonthFollows(i int) bool {
	p.blank(&i)
	v, _, k := p.hanNumber(i)
	p.blank(&k)
	return k > i && v >= 1 && v <= 12 && p.starts(k, "月")
}

// hanInYear reads a part of the year y at byte i.
func (p *parser) hanInYear(i, y int) (match, int) {
	if month, day, third, j := p.hanMonth(i); month > 0 {
		return hanDated(y, month, day, third), j
	}
	j := i
	p.eat(&j, "年")
	switch {
	case p.eat(&j, "初"):
		return edgeOf(match{span: yearSpan(y), grain: GrainYear, conf: 0.9}, 0), j
	case p.eat(&j, "底", "末", "尾"):
		return match{span: span{dayCivil(dayOf(y, 11, 1)), dayCivil(dayOf(y+1, 1, 1))}, grain: GrainMonth, conf: 0.9}, j
	case j > i && p.eat(&j, "中"):
		return edgeOf(match{span: yearSpan(y), grain: GrainYear, conf: 0.9}, 1), j
	}
	j = i
	switch {
	case p.eat(&j, "上半年"):
		return match{span: span{yearSpan(y).from, dayCivil(dayOf(y, 7, 1))}, grain: GrainSeason, conf: 0.95}, j
	case p.eat(&j, "下半年"):
		return match{span: span{dayCivil(dayOf(y, 7, 1)), yearSpan(y).to}, grain: GrainSeason, conf: 0.95}, j
	}
	if q, j := p.hanQuarter(i); q > 0 {
		return match{span: quarterSpan(y, q), grain: GrainQuarter, conf: 0.95}, j
	}
	if s, j := p.hanSeason(i); s >= 0 {
		m := match{span: seasonSpan(y, s), grain: GrainSeason, conf: 0.9}
		if s == 3 {
			m.alt = seasonSpan(y-1, s)
		}
		return m, j
	}
	if h, j := p.hanHoliday(i); h >= 0 {
		return match{span: h.span(y), grain: h.grain(), conf: 0.95 * h.trust()}, j
	}
	return match{}, i
}

// hanMonth reads a month and what of it: 五月三号, 5月初, 12月中旬. third is 0 to 2 for
// its parts, else -1.
func (p *parser) hanMonth(i int) (month, day, third, next int) {
	v, _, j := p.hanNumber(i)
	if j == i || v < 1 || v > 12 {
		return 0, 0, -1, i
	}
	p.blank(&j)
	if !p.eat(&j, "月份", "月") {
		return 0, 0, -1, i
	}
	k := j
	p.blank(&k)
	if d, _, e := p.hanNumber(k); e > k && d >= 1 && d <= 31 {
		bare := e
		p.blank(&e)
		if p.eat(&e, "日", "号") {
			return v, d, -1, e
		}
		if p.hanSpelled(k) && !p.starts(e, "个", "年", "月", "点", "次", "人", "天", "时", "分", "小", "星", "周") {
			return v, d, -1, bare
		}
	}
	switch {
	case p.eat(&j, "初", "上旬"):
		return v, 0, 0, j
	case p.eat(&j, "中旬", "中"):
		return v, 0, 1, j
	case p.eat(&j, "底", "下旬", "末"):
		return v, 0, 2, j
	}
	return v, 0, -1, j
}

// hanSpelled reports whether a numeral, not a digit, stands at i.
func (p *parser) hanSpelled(i int) bool { return i < len(p.s) && !isDigit(p.s[i]) }

func hanDated(y, month, day, third int) match {
	if day > 0 {
		m := match{span: datedSpan(y, month, day, 0), grain: GrainDay, conf: 1}
		if m.span.empty() {
			return match{}
		}
		return m
	}
	m := match{span: monthSpan(y, month), grain: GrainMonth, conf: 0.98}
	if third >= 0 {
		return edgeOf(m, third)
	}
	return m
}

// hanMonthDay reads a month without a year.
func (p *parser) hanMonthDay(i int) (match, int) {
	month, day, third, j := p.hanMonth(i)
	if month == 0 {
		return match{}, i
	}
	conf, grain := 0.85, hanDated(2000, month, day, third).grain
	if day > 0 {
		conf = 0.92
	}
	m := p.yearly(func(y int) span { return hanDated(y, month, day, third).span }, grain, conf)
	if m.span.empty() {
		return match{}, i
	}
	return m, j
}

// hanMonthFrom reads 上个月, 本月底, 下月三号.
func (p *parser) hanMonthFrom(i int) (match, int) {
	j, n := i, 0
	switch {
	case p.eat(&j, "上上个月", "上上月"):
		n = -2
	case p.eat(&j, "上个月", "上月"):
		n = -1
	case p.eat(&j, "这个月", "本月", "这月", "当月"):
	case p.eat(&j, "下下个月", "下下月"):
		n = 2
	case p.eat(&j, "下个月", "下月"):
		n = 1
	case p.eat(&j, "上个季度", "上季度", "上一季度"):
		return p.unitAround(uQuarter, -1, false), j
	case p.eat(&j, "本季度", "这个季度"):
		return p.unitAround(uQuarter, 0, false), j
	case p.eat(&j, "下个季度", "下季度", "下一季度"):
		return p.unitAround(uQuarter, 1, false), j
	case p.eat(&j, "月"):
		j -= len("月")
		if k := j + len("月"); !p.starts(k, "初", "底", "末") {
			return match{}, i
		}
		j += len("月")
	default:
		return match{}, i
	}
	y, mo, _ := dateOf(dayOf(p.year, p.month+n, 1))
	m := match{span: monthSpan(y, mo), grain: GrainMonth, conf: 0.95, relative: true}
	k := j
	p.eat(&k, "的")
	switch {
	case p.eat(&k, "初", "上旬"):
		return edgeOf(m, 0), k
	case p.eat(&k, "中旬"):
		return edgeOf(m, 1), k
	case p.eat(&k, "底", "末", "下旬"):
		return edgeOf(m, 2), k
	}
	if d, _, e := p.hanNumber(k); e > k && p.eat(&e, "号", "日") {
		if m = hanDated(y, mo, d, -1); m.ok() {
			m.relative = true
			return m, e
		}
		return match{}, i
	}
	return m, j
}

// hanWeekday reads the day after 周, 星期 or 礼拜: 0..6, 7 for 末, or -1.
func (p *parser) hanWeekday(i *int) int {
	for w, names := range [...][2]string{{"一", "1"}, {"二", "2"}, {"三", "3"}, {"四", "4"}, {"五", "5"}, {"六", "6"}, {"日", "天"}, {"末", "末"}} {
		if p.eat(i, names[0], names[1]) {
			return w
		}
	}
	return -1
}

// hanWeek reads 上周五, 下下周周三, 这个星期, 周末, 每周二, 星期三.
func (p *parser) hanWeek(i int) (match, int) {
	j, n, named := i, 0, true
	every := false
	switch {
	case p.eat(&j, "上上个", "上上"):
		n = -2
	case p.eat(&j, "上个", "上一个", "上"):
		n = -1
	case p.eat(&j, "下下个", "下下"):
		n = 2
	case p.eat(&j, "下个", "下一个", "下"):
		n = 1
	case p.eat(&j, "这个", "这一", "这", "本"):
	case p.eat(&j, "每个", "每"):
		every = true
	default:
		named = false
	}
	if !p.eat(&j, "星期", "礼拜", "周") {
		return match{}, i
	}
	k := j
	p.eat(&k, "周", "星期", "的") // 下周周三
	w := p.hanWeekday(&k)
	if p.starts(k, "个", "年", "岁", "月", "点", "天", "周") && w >= 0 && w < 6 && !named {
		return match{}, i // 周一 of a name, 三周年
	}
	week := monday(p.today) + 7*n
	switch {
	case w >= 0 && every:
		day := p.lastWeekday(w%7, p.today+1)
		m := match{span: days(day, 1), grain: GrainDay, repeat: Weekly, others: 1, conf: 0.9}
		if w == 7 {
			m.span = days(lastWeekend(p.today+2), 2)
		}
		return m, k
	case w == 7 && named:
		return match{span: days(week+5, 2), grain: GrainDay, conf: 0.95, relative: true}, k
	case w == 7:
		first := lastWeekend(p.today + 2)
		return match{span: days(first, 2), alt: days(first+7, 2), grain: GrainDay, repeat: Weekly, others: 0.4, conf: 0.7}, k
	case w >= 0 && named:
		return match{span: days(week+w, 1), grain: GrainDay, conf: 0.95, relative: true}, k
	case w >= 0:
		return match{span: days(p.lastWeekday(w, p.today), 1), alt: days(p.lastWeekday(w, p.today+8), 1), grain: GrainDay,
			repeat: Weekly, others: 0.4, conf: 0.8}, k
	case named && !every && !p.starts(j, "边", "围", "岁", "年", "刊", "期"):
		return match{span: days(week, 7), grain: GrainWeek, conf: 0.95, relative: true}, j
	}
	return match{}, i
}

// hanDay reads 昨天, 大前天, 今晚 and their like.
func (p *parser) hanDay(i int) (match, int) {
	j, n, part := i, 0, -1
	switch {
	case p.eat(&j, "大前天", "大前日"):
		n = -3
	case p.eat(&j, "大后天"):
		n = 3
	case p.eat(&j, "前天", "前日"):
		n = -2
	case p.eat(&j, "后天", "后日"):
		n = 2
	case p.eat(&j, "昨天", "昨日"):
		n = -1
	case p.eat(&j, "明天", "明日"):
		n = 1
	case p.eat(&j, "今天", "今日"):
	case p.eat(&j, "前晚"):
		n, part = -2, partNight
	case p.eat(&j, "昨晚", "昨夜"):
		n, part = -1, partNight
	case p.eat(&j, "今晚", "今夜"):
		part = partNight
	case p.eat(&j, "明晚"):
		n, part = 1, partNight
	case p.eat(&j, "今早", "今晨"):
		part = partMorning
	case p.eat(&j, "明早", "明晨"):
		n, part = 1, partMorning
	default:
		return match{}, i
	}
	m := match{span: days(p.today+n, 1), grain: GrainDay, conf: 0.95, relative: true}
	if part >= 0 {
		p.eat(&j, "上")
		return p.hanClockIn(m, part, j)
	}
	return m, j
}

// hanDayOnly reads 3号, of this month or the last.
func (p *parser) hanDayOnly(i int) (match, int) {
	d, digits, j := p.hanNumber(i)
	if j == i || digits > 2 || d < 1 || d > 31 || !p.eat(&j, "号") || i > 0 && (isAlpha(p.s[i-1]) || isDigit(p.s[i-1])) {
		return match{}, i
	}
	if p.starts(j, "线", "楼", "门", "馆", "店", "机", "车", "院", "厅", "室", "位", "桌", "球", "字", "选手", "码", "房", "仓", "柜", "窗", "台", "文件", "公路", "染色") {
		return match{}, i
	}
	day := p.today
	for p.dayIn(day) != d {
		day--
	}
	return match{span: days(day, 1), grain: GrainDay, repeat: Monthly, others: 0.6, conf: 0.5}, j
}
