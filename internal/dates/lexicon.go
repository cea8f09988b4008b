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
	kOrdinal      // val: "8th" or the name of an ordinal
	kMonth        // val: 1..12
	kWeekday      // val: 0 for Monday to 6
	kDay          // val: days from today
	kRel          // val: -2..2 units from the present one
	kUnit         // val: a unit
	kLoose        // val: a number that is not exact ("few", "couple")
	kAgo          // the distance before it lies in the past
	kFuture       // the distance before it lies to come
	kNow          // what a distance to come is counted from
	kIn           // a distance to come, or a preposition
	kPrep         // a preposition that a date follows
	kRelate       // val: a Relation for the date behind it
	kRelated      // val: a Relation for the date before it (Chinese)
	kBetween      // "between", "from", 从
	kAnd          // what stands between the ends of a range; val 1: also without a word before it
	kFiller       // "of", "the": may stand inside a date
	kEvery        // "every", 每
	kYear         // 年 behind a number, or val: "last year" as one word
	kMonthOf      // 月 behind a number
	kDayOf        // 日 or 号 behind a number
	kWeek         // 周, 星期 before a number or 天
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
	"today": {kind: kDay}, "yesterday": {kind: kDay, val: -1}, "tomorrow": {kind: kDay, val: 1}, "tonight": {kind: kDay}, "now": {kind: kNow},
	"last": {kind: kRel, val: -1}, "past": {kind: kRel, val: -1}, "previous": {kind: kRel, val: -1},
	"this": {kind: kRel}, "current": {kind: kRel}, "next": {kind: kRel, val: 1}, "coming": {kind: kRel, val: 1},
	"a": {kind: kNumber, val: 1, unsure: true}, "an": {kind: kNumber, val: 1, unsure: true},
	"couple": {kind: kLoose, val: 2}, "few": {kind: kLoose, val: 3},
	"first": {kind: kOrdinal, val: 1}, "second": {kind: kOrdinal, val: 2}, "third": {kind: kOrdinal, val: 3},
	"ago": {kind: kAgo}, "back": {kind: kAgo, unsure: true}, "later": {kind: kFuture}, "from": {kind: kBetween},
	"in": {kind: kIn}, "on": {kind: kPrep}, "during": {kind: kPrep}, "throughout": {kind: kPrep}, "by": {kind: kRelate, val: int(Until)},
	"before": {kind: kRelate, val: int(Before)}, "after": {kind: kRelate, val: int(After)}, "since": {kind: kRelate, val: int(Since)},
	"until": {kind: kRelate, val: int(Until)}, "till": {kind: kRelate, val: int(Until)}, "around": {kind: kRelate, val: int(Around)},
	"about": {kind: kRelate, val: int(Around)}, "circa": {kind: kRelate, val: int(Around)},
	"between": {kind: kBetween}, "and": {kind: kAnd}, "to": {kind: kAnd, val: 1}, "through": {kind: kAnd, val: 1},
	"of": {kind: kFiller}, "the": {kind: kFiller}, "every": {kind: kEvery}, "each": {kind: kEvery},
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
		all[name+"s"] = entry{kind: kWeekday, val: i, plural: true}
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

// longestHan is the length of the longest word of chinese, in characters.
const longestHan = 4

// chinese has words that mean something before or behind others. The longest one
// that fits is taken.
var chinese = map[string]entry{
	"今天": {kind: kDay}, "今晚": {kind: kDay}, "今早": {kind: kDay}, "昨天": {kind: kDay, val: -1}, "昨晚": {kind: kDay, val: -1}, "昨日": {kind: kDay, val: -1},
	"前天": {kind: kDay, val: -2}, "大前天": {kind: kDay, val: -3}, "明天": {kind: kDay, val: 1}, "明晚": {kind: kDay, val: 1}, "明早": {kind: kDay, val: 1},
	"后天": {kind: kDay, val: 2}, "大后天": {kind: kDay, val: 3},
	"今年": {kind: kYear, val: 0}, "去年": {kind: kYear, val: -1}, "前年": {kind: kYear, val: -2}, "明年": {kind: kYear, val: 1}, "后年": {kind: kYear, val: 2},
	"上": {kind: kRel, val: -1}, "上个": {kind: kRel, val: -1}, "上上": {kind: kRel, val: -2}, "上上个": {kind: kRel, val: -2},
	"这": {kind: kRel}, "这个": {kind: kRel}, "本": {kind: kRel}, "下": {kind: kRel, val: 1}, "下个": {kind: kRel, val: 1},
	"下下": {kind: kRel, val: 2}, "下下个": {kind: kRel, val: 2},
	"周": {kind: kWeek}, "星期": {kind: kWeek}, "礼拜": {kind: kWeek}, "周末": {kind: kUnit, val: uWeekend},
	"个月": {kind: kUnit, val: uMonth}, "个星期": {kind: kUnit, val: uWeek}, "个礼拜": {kind: kUnit, val: uWeek},
	"年": {kind: kYear, val: noYear}, "月": {kind: kMonthOf}, "月份": {kind: kMonthOf}, "日": {kind: kDayOf}, "号": {kind: kDayOf}, "天": {kind: kUnit, val: uDay},
	"前": {kind: kAgo}, "以前": {kind: kRelated, val: int(Before)}, "之前": {kind: kRelated, val: int(Before)},
	"后": {kind: kFuture}, "以后": {kind: kRelated, val: int(After)}, "之后": {kind: kRelated, val: int(After)},
	"以来": {kind: kRelated, val: int(Since)}, "左右": {kind: kRelated, val: int(Around)}, "前后": {kind: kRelated, val: int(Around)},
	"从": {kind: kBetween}, "到": {kind: kAnd, val: 1}, "至": {kind: kAnd, val: 1}, "的": {kind: kFiller}, "每": {kind: kEvery}, "每个": {kind: kEvery},
}

// noYear marks 年, which makes the number before it a year.
const noYear = 1 << 20

// hanDigits are Chinese numerals. 十, 百 and 千 multiply.
var hanDigits = map[rune]int{
	'〇': 0, '零': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9, '十': 10, '廿': 20, '百': 100, '千': 1000,
}
