package dates

// hanUnit reads a unit of time.
func (p *parser) hanUnit(i *int) (unit int, ok bool) {
	switch {
	case p.eat(i, "个星期", "星期", "个礼拜", "礼拜", "个周", "周"):
		return uWeek, true
	case p.eat(i, "个小时", "小时", "个钟头"):
		return uHour, true
	case p.eat(i, "分钟"):
		return uMinute, true
	case p.eat(i, "个月", "个多月"):
		return uMonth, true
	case p.eat(i, "个季度"):
		return uQuarter, true
	case p.eat(i, "天", "日"):
		return uDay, true
	case p.eat(i, "年"):
		return uYear, true
	}
	return 0, false
}

// hanCount reads 三, 3, 半, 几, 好几, 十几, 两三.
func (p *parser) hanCount(i *int) (count, bool) {
	switch {
	case p.eat(i, "半"):
		return count{halves: 1}, true
	case p.eat(i, "好几", "几"):
		return count{halves: 8, loose: true}, true
	}
	v, digits, j := p.hanNumber(*i)
	if j == *i || v == 0 || v > maxCount {
		return count{}, false
	}
	spelled := p.hanSpelled(*i)
	*i = j
	if a, b := v/10, v%10; spelled && digits == 2 && a > 0 && (b == a+1 || b == a+2) { // 两三天, 三五年
		return count{halves: a + b, loose: true}, true
	}
	c := count{halves: 2 * v}
	switch { // 十几 is about 15
	case p.eat(i, "几"):
		c.halves, c.loose = c.halves+v/2*2, true
	case p.eat(i, "多"):
		c.halves, c.loose = c.halves+v/4*2, true
	}
	p.blank(i)
	return c, true
}

// hanAgo reads 三天前, 两周以前, 半年后, 前几天, 过去三个月, 最近一周, 近两年.
func (p *parser) hanAgo(i int) (match, int) {
	j := i
	rel := 0
	switch {
	case p.eat(&j, "过去的", "过去", "最近的", "最近", "近", "前", "这"):
		rel = -1
	case p.eat(&j, "未来的", "未来", "接下来的", "接下来"):
		rel = 1
	}
	c, ok := p.hanCount(&j)
	if !ok {
		return match{}, i
	}
	if p.starts(j, "个半") { // 一个半月前
		c.halves++
		j += len("个半")
	}
	unit, ok := p.hanUnit(&j)
	if !ok && c.halves%2 == 1 && p.eat(&j, "月") { // 半月前
		unit, ok = uMonth, true
	}
	if !ok {
		return match{}, i
	}
	if rel == 0 && (unit == uYear || unit == uDay) && p.eat(&j, "半") { // 一年半前
		c.halves++
	}
	if rel != 0 {
		if unit <= uHour && !p.starts(i, "过去", "最近", "未来") || p.starts(i, "前") && unit == uYear && !c.loose {
			return match{}, i
		}
		m := p.period(c, unit, rel)
		if p.starts(i, "前", "这") {
			m.conf = 0.7
		}
		return m, j
	}
	sign := 0
	switch {
	case p.eat(&j, "之前", "以前"), !p.starts(j, "前后", "前台", "前端", "前任", "前往") && p.eat(&j, "前"):
		sign = -1
	case p.eat(&j, "之后", "以后"), !p.starts(j, "后台", "后端", "后来") && p.eat(&j, "后"):
		sign = 1
	default:
		return match{}, i
	}
	u := token{kind: kUnit, val: int32(unit)}
	m := p.away(p.today, c, &u, sign)
	if sign > 0 {
		m.conf *= 0.75
	}
	return m, j
}

// hanQuarter reads 第三季度, 一季度, 四季度.
func (p *parser) hanQuarter(i int) (q, next int) {
	j := i
	p.eat(&j, "第")
	v, _, k := p.hanNumber(j)
	if k == j || v < 1 || v > 4 || !p.eat(&k, "季度") {
		return 0, i
	}
	return v, k
}

// hanSeason reads 春天, 夏季 and the school holidays.
func (p *parser) hanSeason(i int) (season, next int) {
	j := i
	switch {
	case p.eat(&j, "春天", "春季"):
		return 0, j
	case p.eat(&j, "夏天", "夏季", "夏日", "暑假", "暑期"):
		return 1, j
	case p.eat(&j, "秋天", "秋季"):
		return 2, j
	case p.eat(&j, "冬天", "冬季", "寒假"):
		return 3, j
	}
	return -1, i
}

func (p *parser) hanSeasonAlone(i int) (match, int) {
	if q, j := p.hanQuarter(i); q > 0 {
		return p.yearly(func(y int) span { return quarterSpan(y, q) }, GrainQuarter, 0.7), j
	}
	if s, j := p.hanSeason(i); s >= 0 {
		return p.yearly(func(y int) span { return seasonSpan(y, s) }, GrainSeason, 0.6), j
	}
	j := i
	switch {
	case p.eat(&j, "年初"):
		return edgeOf(match{span: yearSpan(p.year), grain: GrainYear, conf: 0.7, relative: true}, 0), j
	case p.eat(&j, "年底", "年末"):
		m := p.yearly(func(y int) span { return span{dayCivil(dayOf(y, 11, 1)), yearSpan(y).to} }, GrainMonth, 0.7)
		return m, j
	case p.eat(&j, "上半年", "下半年"):
		from, to := 1, 7
		if p.starts(i, "下") {
			from, to = 7, 13
		}
		m := p.yearly(func(y int) span { return span{dayCivil(dayOf(y, from, 1)), dayCivil(dayOf(y, to, 1))} }, GrainSeason, 0.6)
		return m, j
	}
	return match{}, i
}

// hanDecade reads 九十年代, 90年代, 二十世纪八十年代.
func (p *parser) hanDecade(i int) (match, int) {
	j, century := i, 0
	switch {
	case p.eat(&j, "上世纪", "上个世纪"):
		century = 1900
	case p.eat(&j, "本世纪"):
		century = 2000
	default:
		if v, _, k := p.hanNumber(i); k > i && v > 10 && v < 30 && p.eat(&k, "世纪") {
			j, century = k, (v-1)*100
		}
	}
	v, _, k := p.hanNumber(j)
	if k == j || v%10 != 0 || v > 90 && (century > 0 || !plausibleYear(v)) || !p.eat(&k, "年代") {
		return match{}, i
	}
	if century == 0 && v < 100 {
		if century = 1900; v < 30 {
			century = 2000
		}
	}
	first := century + v
	return match{span: span{yearSpan(first).from, yearSpan(first + 9).to}, grain: GrainDecade, conf: 0.85}, k
}

// hanVague reads 最近, 前段时间, 刚才.
func (p *parser) hanVague(i int) (match, int) {
	j := i
	switch {
	case p.eat(&j, "前一段时间", "前段时间", "前阵子", "前些日子", "前些天"):
		return match{span: days(p.today-60, 60), grain: GrainMonth, conf: 0.5, relative: true}, j
	case p.eat(&j, "最近", "近来", "近期", "近日"):
		return match{span: days(p.today-30, 31), grain: GrainMonth, conf: 0.4, relative: true}, j
	case p.eat(&j, "刚才", "刚刚"):
		return match{span: span{p.now - 3600, p.now + 1}, grain: GrainHour, conf: 0.4, relative: true}, j
	}
	return match{}, i
}
