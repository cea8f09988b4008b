package dates

import "strings"

// wants says by name what a shape may ask of one token.
var wants = map[string]func(t *token) bool{
	"date": is(kDate), "month": is(kMonth), "weekday": is(kWeekday), "rel": is(kRel), "today": is(kDay), "unit": is(kUnit), "年": is(kYear), "日": is(kOrdinal),
	"year":   func(t *token) bool { return fourDigits(t, minYear, maxYear) },
	"modern": func(t *token) bool { return fourDigits(t, 1500, 2100) },
	"day":    func(t *token) bool { return (t.kind == kOrdinal || plainNumber(t)) && t.val >= 1 && t.val <= 31 },
	"count":  func(t *token) bool { return t.kind == kNumber && t.val >= 1 && t.val <= 1000 },
	"weeks":  func(t *token) bool { return t.kind == kUnit && t.val == uWeek },
	"years":  func(t *token) bool { return t.kind == kUnit && t.val == uYear },
	"ago":    func(t *token) bool { return t.kind == kAgo || related(t, kRelated, Before) },
	"later":  func(t *token) bool { return t.kind == kLater || related(t, kRelated, After) },
}

func is(k kind) func(*token) bool { return func(t *token) bool { return t.kind == k } }

func plainNumber(t *token) bool { return t.kind == kNumber && !t.unsure && t.digits < 4 }

func fourDigits(t *token, from, to int) bool {
	return t.kind == kNumber && t.digits == 4 && !t.han && t.val >= from && t.val <= to
}

func related(t *token, k kind, r Relation) bool { return t.kind == k && Relation(t.val) == r }

// wish is what a shape asks of one of its tokens, which may be missing if optional.
type wish struct {
	fits     func(*token) bool
	optional bool
}

func want(names string) (all []wish) {
	for _, name := range strings.Fields(names) {
		short := strings.TrimSuffix(name, "?")
		all = append(all, wish{wants[short], short != name})
	}
	return all
}

// shape is a sequence of tokens that is a date. One that must be introduced needs a
// preposition before it.
type shape struct {
	wants      []wish
	introduced bool
	read       func(p *parser, t []*token) match
}

const longestShape = 4

// shapes are tried in order: a longer one stands before its own beginning.
var shapes = []shape{
	{want("date"), false, func(_ *parser, t []*token) match { return t[0].date }},
	{want("weekday? day month year?"), false, func(p *parser, t []*token) match { return p.named(t[3].val, t[2].val, t[1].val) }},
	{want("weekday? month day year?"), false, func(p *parser, t []*token) match { return p.named(t[3].val, t[1].val, t[2].val) }},
	{want("month rel years"), false, func(p *parser, t []*token) match { return p.inYear(t[1].val, t[0].val, 0) }},
	{want("month year?"), false, func(p *parser, t []*token) match { return p.named(t[1].val, t[0].val, 0) }},
	{want("年 month 日?"), false, func(p *parser, t []*token) match { return p.inYear(t[0].val, t[1].val, t[2].val) }},
	{want("年"), false, func(p *parser, t []*token) match { return p.inYear(t[0].val, 0, 0) }},

	{want("count unit ago"), false, func(p *parser, t []*token) match { return p.distance(-t[0].val, t[1]) }},
	{want("count unit later"), false, func(p *parser, t []*token) match { return p.distance(t[0].val, t[1]) }},
	{want("rel count unit"), false, func(p *parser, t []*token) match { return p.stretch(t[0].val*t[1].val, t[2]) }},
	{want("rel unit"), false, func(p *parser, t []*token) match { return p.around(t[0].val, t[1]) }},
	{want("rel weekday"), false, (*parser).relWeekday},
	{want("rel month"), false, (*parser).relMonth},
	{want("weekday rel weeks"), false, func(p *parser, t []*token) match { return p.dayOfWeek(t[0].val, t[1].val) }},
	{want("weekday"), false, (*parser).weekday},
	{want("today"), false, func(p *parser, t []*token) match { return p.dayFrom(t[0].val) }},
	{want("modern"), true, func(p *parser, t []*token) match { return absolute(t[0].val, 0, 0) }},
}
