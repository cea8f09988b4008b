package dates

import "unicode/utf8"

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
