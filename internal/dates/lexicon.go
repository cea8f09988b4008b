package dates

import (
	"maps"
	"strings"
)

// kind is what a token is to the shapes.
type kind uint8

const (
	kEnd     kind = iota
	kBreak        // anything that ends a date
	kDate         // a whole numeric date
	kNumber       // val: the number
	kOrdinal      // val: "8th", 8日 or the name of an ordinal
	kYear         // val: 2023年 or, counted from the present one, 去年
	kMonth        // val: 1..12
	kWeekday      // val: 0 for Monday to 6
	kDay          // val: days from today
	kRel          // val: -2..2 units from the present one
	kUnit         // val: a unit
	kAgo          // the distance before it lies in the past
	kLater        // the distance before it lies to come
	kPrep         // a preposition that a date follows
	kRelate       // val: a Relation for the date behind it
	kRelated      // val: a Relation for the date before it (Chinese)
	kFiller       // "of", "the": may stand inside a date
)

// The units of distances.
const (
	uDay = iota
	uWeek
	uWeekend
	uMonth
	uYear
)

// entry is a word's meaning. An unsure word is a date only where something beside
// it says so: "may", "march", "sun".
type entry struct {
	kind   kind
	val    int
	unsure bool
	plural bool
}

// words has what no list below names.
var words = map[string]entry{
	"today": {kind: kDay}, "yesterday": {kind: kDay, val: -1}, "tomorrow": {kind: kDay, val: 1}, "tonight": {kind: kDay},
	"last": {kind: kRel, val: -1}, "past": {kind: kRel, val: -1}, "previous": {kind: kRel, val: -1},
	"this": {kind: kRel}, "current": {kind: kRel}, "next": {kind: kRel, val: 1}, "coming": {kind: kRel, val: 1},
	"a": {kind: kNumber, val: 1, unsure: true}, "an": {kind: kNumber, val: 1, unsure: true},
	"couple": {kind: kNumber, val: 2, unsure: true}, "few": {kind: kNumber, val: 3, unsure: true},
	"first": {kind: kOrdinal, val: 1}, "second": {kind: kOrdinal, val: 2}, "third": {kind: kOrdinal, val: 3},
	"ago": {kind: kAgo}, "back": {kind: kAgo}, "later": {kind: kLater},
	"in": {kind: kPrep}, "on": {kind: kPrep}, "from": {kind: kPrep}, "between": {kind: kPrep}, "during": {kind: kPrep}, "throughout": {kind: kPrep},
	"before": {kind: kRelate, val: int(Before)}, "after": {kind: kRelate, val: int(After)}, "since": {kind: kRelate, val: int(Since)},
	"until": {kind: kRelate, val: int(Until)}, "till": {kind: kRelate, val: int(Until)}, "by": {kind: kRelate, val: int(Until)},
	"around": {kind: kRelate, val: int(Around)}, "about": {kind: kRelate, val: int(Around)}, "circa": {kind: kRelate, val: int(Around)},
	"of": {kind: kFiller}, "the": {kind: kFiller},
}

const (
	monthNames   = "january february march april may june july august september october november december"
	weekdayNames = "monday tuesday wednesday thursday friday saturday sunday"
	// ambiguous are names that are words or parts of names as well; so are all
	// abbreviations.
	ambiguous = "march may august"
)

// english has the lower-case words that mean something in a date.
var english = func() map[string]entry {
	all := maps.Clone(words)
	for i, name := range strings.Fields(monthNames) {
		all[name[:3]] = entry{kind: kMonth, val: i + 1, unsure: true}
		all[name] = entry{kind: kMonth, val: i + 1, unsure: strings.Contains(ambiguous, name)}
	}
	all["sept"] = all["sep"]
	for i, name := range strings.Fields(weekdayNames) {
		for _, short := range []string{name[:3], name[:4], name[:5]} {
			all[short] = entry{kind: kWeekday, val: i, unsure: true}
		}
		all[name] = entry{kind: kWeekday, val: i}
	}
	for i, name := range strings.Fields("one two three four five six seven eight nine ten eleven twelve") {
		all[name] = entry{kind: kNumber, val: i + 1, unsure: true}
	}
	for i, name := range strings.Fields("day week weekend month year") {
		all[name] = entry{kind: kUnit, val: i}
		all[name+"s"] = entry{kind: kUnit, val: i, plural: true}
	}
	return all
}()

// hanWords has the Chinese words that no list below names.
var hanWords = map[string]entry{
	"今天": {kind: kDay}, "今晚": {kind: kDay}, "今早": {kind: kDay}, "昨天": {kind: kDay, val: -1}, "昨晚": {kind: kDay, val: -1}, "昨日": {kind: kDay, val: -1},
	"前天": {kind: kDay, val: -2}, "大前天": {kind: kDay, val: -3}, "明天": {kind: kDay, val: 1}, "明晚": {kind: kDay, val: 1}, "明早": {kind: kDay, val: 1},
	"后天": {kind: kDay, val: 2}, "大后天": {kind: kDay, val: 3},
	"今年": {kind: kYear, val: 0}, "去年": {kind: kYear, val: -1}, "前年": {kind: kYear, val: -2}, "明年": {kind: kYear, val: 1}, "后年": {kind: kYear, val: 2},
	"上": {kind: kRel, val: -1}, "上个": {kind: kRel, val: -1}, "上上": {kind: kRel, val: -2}, "上上个": {kind: kRel, val: -2},
	"这": {kind: kRel}, "这个": {kind: kRel}, "本": {kind: kRel}, "下": {kind: kRel, val: 1}, "下个": {kind: kRel, val: 1},
	"下下": {kind: kRel, val: 2}, "下下个": {kind: kRel, val: 2},
	"天": {kind: kUnit, val: uDay}, "个星期": {kind: kUnit, val: uWeek}, "个礼拜": {kind: kUnit, val: uWeek}, "周末": {kind: kUnit, val: uWeekend},
	"月": {kind: kUnit, val: uMonth}, "个月": {kind: kUnit, val: uMonth}, "年": {kind: kUnit, val: uYear},
	"前": {kind: kAgo}, "以前": {kind: kRelated, val: int(Before)}, "之前": {kind: kRelated, val: int(Before)},
	"后": {kind: kLater}, "以后": {kind: kRelated, val: int(After)}, "之后": {kind: kRelated, val: int(After)},
	"以来": {kind: kRelated, val: int(Since)}, "左右": {kind: kRelated, val: int(Around)}, "前后": {kind: kRelated, val: int(Around)},
	"从": {kind: kPrep}, "的": {kind: kFiller},
}

// longestHan is the length of the longest word of chinese, in characters.
const longestHan = 3

// chinese has words that mean something before or behind others. The longest one
// that fits is taken.
var chinese = func() map[string]entry {
	all := maps.Clone(hanWords)
	for _, week := range []string{"周", "星期", "礼拜"} {
		all[week] = entry{kind: kUnit, val: uWeek}
		for i, day := range []rune("一二三四五六日") {
			all[week+string(day)] = entry{kind: kWeekday, val: i}
		}
		all[week+"天"] = all[week+"日"]
	}
	return all
}()

// hanSigns are what a number becomes by the sign behind it, if it lies in the range.
var hanSigns = []struct {
	sign     string
	kind     kind
	min, max int
}{
	{"年", kYear, minYear, maxYear}, {"月份", kMonth, 1, 12}, {"月", kMonth, 1, 12}, {"日", kOrdinal, 1, 31}, {"号", kOrdinal, 1, 31},
}

// hanDigits are Chinese numerals and full-width digits. 十, 百 and 千 multiply.
var hanDigits = map[rune]int{
	'〇': 0, '零': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9, '十': 10, '百': 100, '千': 1000,
	'０': 0, '１': 1, '２': 2, '３': 3, '４': 4, '５': 5, '６': 6, '７': 7, '８': 8, '９': 9,
}
