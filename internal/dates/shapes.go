package dates

import "strings"

// wants says by name what a shape may ask of one token.
var wants = map[string]func(t *token) bool{
	"date": is(kDate), "month": is(kMonth), "weekday": is(kWeekday), "rel": is(kRel), "today": is(kDay), "loose": is(kLoose), "every": is(kEvery), "now": is(kNow),
	"月": is(kMonthOf), "日": is(kDayOf), "周": is(kWeek),
	"year": func(t *token) bool {
		return t.kind == kNumber && (t.digits == 4 || t.han) && t.val >= minYear && t.val <= maxYear
	},
	"day":      func(t *token) bool { return (t.kind == kOrdinal || plainNumber(t)) && t.val >= 1 && t.val <= 31 },
	"month#":   func(t *token) bool { return plainNumber(t) && t.val >= 1 && t.val <= 12 },
	"count":    func(t *token) bool { return (t.kind == kNumber || t.kind == kLoose) && t.val >= 1 && t.val <= 1000 },
	"unit":     func(t *token) bool { return t.kind == kUnit || t.kind == kWeek || t.kind == kYear && t.val == noYear },
	"from":     is(kBetween),
	"weekday#": func(t *token) bool { return plainNumber(t) && t.val >= 1 && t.val <= 6 },
	"arabic":   func(t *token) bool { return plainNumber(t) && !t.han && t.val >= 1 },
	"modern": func(t *token) bool {
		return t.kind == kNumber && t.digits == 4 && !t.han && t.val >= 1500 && t.val <= 2100
	},
	"weeks": func(t *token) bool { return t.kind == kUnit && t.val == uWeek },
	"years": func(t *token) bool { return t.kind == kUnit && t.val == uYear },
	"later": func(t *token) bool { return t.kind == kFuture || related(t, kRelated, After) },
	"ago":   func(t *token) bool { return t.kind == kAgo || related(t, kRelated, Before) },
	"年":     func(t *token) bool { return t.kind == kYear && t.val == noYear },
	"去年":    func(t *token) bool { return t.kind == kYear && t.val != noYear },
	"天":     func(t *token) bool { return t.kind == kDayOf || t.kind == kUnit && t.val == uDay && t.han },
}

func is(k kind) func(*token) bool { return func(t *token) bool { return t.kind == k } }

func plainNumber(t *token) bool { return t.kind == kNumber && !t.unsure && t.digits < 4 }

func related(t *token, k kind, r Relation) bool { return t.kind == k && Relation(t.val) == r }

func want(names string) (fits []func(*token) bool) {
	for _, name := range strings.Fields(names) {
		fits = append(fits, wants[name])
	}
	return fits
}

// shape is a sequence of tokens that is a date. One that must be introduced needs a
// preposition before it, unless it is Chinese.
type shape struct {
	wants      []func(*token) bool
	introduced bool
	read       func(p *parser, t []*token) match
}

const longestShape = 6

// shapes are tried in order: a longer one stands before its own beginning.
var shapes = []shape{
	{want("date"), false, (*parser).numeric},
	{want("weekday day month year"), false, func(p *parser, t []*token) match { return absolute(t[3].val, t[2].val, t[1].val) }},
	{want("weekday month day year"), false, func(p *parser, t []*token) match { return absolute(t[3].val, t[1].val, t[2].val) }},
	{want("day month year"), false, func(p *parser, t []*token) match { return absolute(t[2].val, t[1].val, t[0].val) }},
	{want("month day year"), false, func(p *parser, t []*token) match { return absolute(t[2].val, t[0].val, t[1].val) }},
	{want("weekday day month"), false, func(p *parser, t []*token) match { return p.yearly(t[2].val, t[1].val) }},
	{want("weekday month day"), false, func(p *parser, t []*token) match { return p.yearly(t[1].val, t[2].val) }},
	{want("month year"), false, func(p *parser, t []*token) match { return absolute(t[1].val, t[0].val, 0) }},
	{want("month rel years"), false, func(p *parser, t []*token) match { return relative(absolute(p.year+t[1].val, t[0].val, 0)) }},
	{want("day month"), false, func(p *parser, t []*token) match { return p.yearly(t[1].val, t[0].val) }},
	{want("month day"), false, func(p *parser, t []*token) match { return p.yearly(t[0].val, t[1].val) }},
	{want("month"), false, func(p *parser, t []*token) match { return p.yearly(t[0].val, 0) }},

	{want("year 年 month# 月 day 日"), false, func(p *parser, t []*token) match { return absolute(t[0].val, t[2].val, t[4].val) }},
	{want("year 年 month# 月"), false, func(p *parser, t []*token) match { return absolute(t[0].val, t[2].val, 0) }},
	{want("year 年"), false, func(p *parser, t []*token) match { return absolute(t[0].val, 0, 0) }},
	{want("去年 month# 月 day 日"), false, func(p *parser, t []*token) match { return relative(absolute(p.year+t[0].val, t[1].val, t[3].val)) }},
	{want("去年 month# 月"), false, func(p *parser, t []*token) match { return relative(absolute(p.year+t[0].val, t[1].val, 0)) }},
	{want("去年"), false, func(p *parser, t []*token) match { return relative(absolute(p.year+t[0].val, 0, 0)) }},
	{want("month# 月 day 日"), false, func(p *parser, t []*token) match { return p.yearly(t[0].val, t[2].val) }},
	{want("month# 月 day"), false, func(p *parser, t []*token) match { return p.yearly(t[0].val, t[2].val) }},
	{want("month# 月"), false, func(p *parser, t []*token) match { return p.yearly(t[0].val, 0) }},
	{want("rel 月"), false, func(p *parser, t []*token) match { return p.around(t[0].val, t[1]) }},
	{want("rel 周 weekday#"), false, func(p *parser, t []*token) match { return p.dayOfWeek(t[2].val-1, t[0].val) }},
	{want("rel 周 天"), false, func(p *parser, t []*token) match { return p.dayOfWeek(6, t[0].val) }},
	{want("every 周 weekday#"), false, func(p *parser, t []*token) match { return p.every(t[2].val - 1) }},
	{want("周 weekday#"), false, func(p *parser, t []*token) match { return p.weekly(t[1].val-1, 0.8) }},
	{want("周 天"), false, func(p *parser, t []*token) match { return p.weekly(6, 0.8) }},

	{want("count loose unit ago"), false, func(p *parser, t []*token) match { return p.distance(t[1], t[2], -1, 0.9) }},
	{want("count unit ago"), false, func(p *parser, t []*token) match { return p.distance(t[0], t[1], -1, 0.9) }},
	{want("count unit later"), false, func(p *parser, t []*token) match { return p.distance(t[0], t[1], 1, 0.9) }},
	{want("count unit from now"), false, func(p *parser, t []*token) match { return p.distance(t[0], t[1], 1, 0.9) }},
	{want("arabic unit"), true, func(p *parser, t []*token) match { return p.distance(t[0], t[1], 1, 0.6) }},
	{want("rel count loose unit"), false, func(p *parser, t []*token) match { return p.stretch(t[0].val, t[2], t[3]) }},
	{want("rel count unit"), false, func(p *parser, t []*token) match { return p.stretch(t[0].val, t[1], t[2]) }},
	{want("rel unit"), false, func(p *parser, t []*token) match { return p.around(t[0].val, t[1]) }},
	{want("rel weekday"), false, (*parser).relWeekday},
	{want("rel month"), false, (*parser).relMonth},
	{want("weekday rel weeks"), false, func(p *parser, t []*token) match { return p.dayOfWeek(t[0].val, t[1].val) }},
	{want("every weekday"), false, func(p *parser, t []*token) match { return p.every(t[1].val) }},
	{want("weekday"), false, (*parser).weekday},
	{want("today"), false, func(p *parser, t []*token) match { return p.dayFrom(t[0].val) }},
	{want("modern"), true, func(p *parser, t []*token) match { return absolute(t[0].val, 0, 0) }},
}
