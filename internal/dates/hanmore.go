package dates

import "unicode/utf8"

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

// hanHoliday reads a holiday's name, or returns -1.
func (p *parser) hanHoliday(i int) (holiday, int) {
	j := i
	h := p.hanHolidayName(&j)
	if h < 0 {
		return h, i
	}
	if j-i == len("五一") && (h == holMayDay || h == holChildren) && p.starts(j, "广", "路", "个", "二", "点", "号", "月", "八", "九", "七") {
		return -1, i
	}
	p.eat(&j, "节", "假期", "长假", "黄金周")
	return h, j
}

func (p *parser) hanHolidayName(i *int) holiday {
	r, _ := utf8.DecodeRuneInString(p.s[*i:])
	switch r {
	case '春', '农':
		return p.named(i, holSpringFestival, "春节", "农历新年")
	case '大', '年':
		if h := p.named(i, holSpringFestival, "大年初一"); h >= 0 {
			return h
		}
		return p.named(i, holSpringEve, "大年三十", "年三十")
	case '除':
		return p.named(i, holSpringEve, "除夕")
	case '元':
		if h := p.named(i, holNewYear, "元旦"); h >= 0 {
			return h
		}
		return p.named(i, holLantern, "元宵")
	case '国':
		return p.named(i, holNationalCN, "国庆")
	case '平':
		return p.named(i, holChristmasEve, "平安夜")
	case '圣':
		if h := p.named(i, holChristmasEve, "圣诞前夜"); h >= 0 {
			return h
		}
		return p.named(i, holChristmas, "圣诞")
	case '跨':
		return p.named(i, holNewYearsEve, "跨年夜", "跨年")
	case '中':
		return p.named(i, holMidAutumn, "中秋")
	case '端':
		return p.named(i, holDragonBoat, "端午")
	case '清':
		return p.named(i, holQingming, "清明")
	case '重':
		return p.named(i, holDoubleNinth, "重阳")
	case '七':
		return p.named(i, holQixi, "七夕")
	case '劳':
		return p.named(i, holMayDay, "劳动节")
	case '五':
		return p.named(i, holMayDay, "五一")
	case '十':
		return p.named(i, holNationalCN, "十一假期", "十一长假", "十一黄金周")
	case '儿':
		return p.named(i, holChildren, "儿童节")
	case '六':
		return p.named(i, holChildren, "六一")
	case '妇', '三':
		return p.named(i, holWomen, "妇女节", "三八节")
	case '冬':
		return p.named(i, holWinterSolstice, "冬至")
	case '腊':
		return p.named(i, holLaba, "腊八")
	case '双':
		if h := p.named(i, holSinglesDay, "双十一", "双11"); h >= 0 {
			return h
		}
		return p.named(i, holDoubleTwelve, "双十二", "双12")
	}
	return p.hanFestival(i, r)
}

// hanFestival knows the holidays that have two characters before the 节.
func (p *parser) hanFestival(i *int, r rune) holiday {
	switch r {
	case '情':
		return p.named(i, holValentine, "情人节")
	case '教':
		return p.named(i, holTeachers, "教师节")
	case '青':
		return p.named(i, holYouth, "青年节")
	case '建':
		return p.named(i, holArmy, "建军节")
	case '愚':
		return p.named(i, holFools, "愚人节")
	case '感':
		return p.named(i, holThanksgiving, "感恩节")
	case '母':
		return p.named(i, holMother, "母亲节")
	case '父':
		return p.named(i, holFather, "父亲节")
	case '植':
		return p.named(i, holTreePlanting, "植树节")
	case '复':
		return p.named(i, holEaster, "复活节")
	}
	return -1
}

func (p *parser) named(i *int, h holiday, names ...string) holiday {
	if p.eat(i, names...) {
		return h
	}
	return -1
}

func (p *parser) hanHolidayAlone(i int) (match, int) {
	h, j := p.hanHoliday(i)
	if h < 0 {
		return match{}, i
	}
	return p.yearly(h.span, h.grain(), 0.85*h.trust()), j
}

// hanLunar reads days of the Chinese calendar as the two months in which they
// fall: 农历八月十五, 正月初五, 腊月廿三.
func (p *parser) hanLunar(i int) (match, int) {
	j, month := i, 0
	named := p.eat(&j, "农历", "阴历")
	switch {
	case p.eat(&j, "正月"):
		month = 1
	case p.eat(&j, "腊月"):
		month = 12
	case named:
		v, _, k := p.hanNumber(j)
		if k == j || v < 1 || v > 12 || !p.eat(&k, "月") {
			return match{}, i
		}
		month, j = v, k
	default:
		return match{}, i
	}
	p.eat(&j, "初")
	if d, _, k := p.hanNumber(j); k > j && d <= 30 {
		j = k
	}
	// The lunar month begins 29.5 days a month after a new year between 21 January
	// and 20 February, a month later in a leap year.
	m := p.yearly(func(y int) span {
		first := newYearMoon(y) + (month-1)*59/2
		return days(first, 60)
	}, GrainMonth, 0.5)
	return m, j
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
	case p.eat(&j, "点钟", "点整", "点", "时"):
		if p.s[j-1] == "时"[2] && p.starts(j, "间", "候", "期", "代") {
			return 0, 0, 0, i
		}
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
