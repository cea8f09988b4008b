package dates

// kind is the meaning of a token.
type kind uint8

const (
	kEnd kind = iota // after the last token
	kWord
	kSign // val is the character
	kHan  // a place in the text where a Chinese expression may start
	kNumber
	kMonth    // val 1..12
	kWeekday  // val 0..6 from Monday
	kUnit     // val is a unit
	kPart     // val is a part of the day
	kSeason   // val 0..3 from spring
	kHoliday  // val is a holiday
	kQuarter  // val 1..4
	kDay      // val in days from the reference
	kTonight  // this evening
	kRel      // val -1 last, 0 this, 1 next
	kPast     // "past", "previous": last when it stands alone
	kFew      // val is the number that is meant; flagLoose for the vague ones
	kArticle  // a, an
	kThe      // the
	kHalf     // half
	kEdge     // val 0 early, 1 mid, 2 late
	kMeridiem // val 0 am, 12 pm
	kNoon     // val is the hour
	kRecent   // val is the days back
	kEvery    // every, each
	kEarlier  // val -1 earlier, 1 later
	kOther    // "other", of "the other day"
	kAgo      // val -1 ago
	kFromNow  // "hence"
	kNow      // now
	kBefore   // before, prior
	kAfter    // after, following
	kSince    // since
	kUntil    // until, till, through
	kBy       // by
	kAround   // around, about, circa
	kDuring   // during, throughout
	kIn       // in
	kOn       // on
	kAt       // at
	kOf       // of
	kFrom     // from
	kTo       // to
	kAnd      // and
	kBetween  // between
	kOver     // over

	kHundred   // val 100
	kFollowing // following
	kNew       // new, of "New Year"
	kOclock    // o'clock
	kThanks    // val is a holiday of two words, of which this is the first
	kOr        // or
)

// Units, in the value of kUnit.
const (
	uMinute = iota
	uHour
	uDay
	uWeekend
	uWeek
	uFortnight
	uMonth
	uQuarter
	uYear
	uDecade
	uSecond
)

// Parts of the day.
const (
	partMorning = iota
	partNoon
	partAfternoon
	partEvening
	partNight
	partEarly // before the morning
	partDawn
)

type flags uint16

const (
	flagSpace   flags = 1 << iota // white space before
	flagLine                      // first of a line
	flagUpper                     // starts with a capital
	flagPlural                    // Tuesdays, weeks
	flagAmbig                     // also an ordinary word: may, second, fall
	flagOrdinal                   // 8th, third
	flagSpelled                   // a number in words
	flagLoose                     // a number that only sounds exact: a few
	flagComma                     // a number with thousands separators
	flagTens                      // 1990s, 90s
	flagGlued                     // part of a compound: version, address, path
	flagOwner                     // ended in 's
	flagWide                      // too long a number
	flagShort                     // an abbreviation
)

type entry struct {
	kind kind
	val  int16
	fl   flags
}

// english returns the meaning of a word in small letters.
func english(w string) entry {
	if len(w) < 1 || len(w) > 13 {
		return entry{kind: kWord}
	}
	if e := calendarWord(w); e.kind != kEnd {
		return e
	}
	if e := functionWord(w); e.kind != kEnd {
		return e
	}
	if v, ord := numberWord(w); v >= 0 {
		e := entry{kNumber, int16(v), flagSpelled}
		if ord {
			e.fl |= flagOrdinal
		}
		return e
	}
	return entry{kind: kWord}
}

// calendarWord knows the names of months, days, seasons, units and parts.
func calendarWord(w string) entry {
	switch w {
	case "january":
		return entry{kMonth, 1, 0}
	case "february":
		return entry{kMonth, 2, 0}
	case "march":
		return entry{kMonth, 3, flagAmbig}
	case "april":
		return entry{kMonth, 4, 0}
	case "may":
		return entry{kMonth, 5, flagAmbig}
	case "june":
		return entry{kMonth, 6, 0}
	case "july":
		return entry{kMonth, 7, 0}
	case "august":
		return entry{kMonth, 8, flagAmbig}
	case "september":
		return entry{kMonth, 9, 0}
	case "october":
		return entry{kMonth, 10, 0}
	case "november":
		return entry{kMonth, 11, 0}
	case "december":
		return entry{kMonth, 12, 0}
	case "jan":
		return entry{kMonth, 1, flagAmbig | flagShort}
	case "feb":
		return entry{kMonth, 2, flagShort}
	case "mar":
		return entry{kMonth, 3, flagAmbig | flagShort}
	case "apr":
		return entry{kMonth, 4, flagAmbig | flagShort}
	case "jun":
		return entry{kMonth, 6, flagAmbig | flagShort}
	case "jul":
		return entry{kMonth, 7, flagAmbig | flagShort}
	case "aug":
		return entry{kMonth, 8, flagAmbig | flagShort}
	case "sep", "sept":
		return entry{kMonth, 9, flagAmbig | flagShort}
	case "oct":
		return entry{kMonth, 10, flagAmbig | flagShort}
	case "nov":
		return entry{kMonth, 11, flagAmbig | flagShort}
	case "dec":
		return entry{kMonth, 12, flagAmbig | flagShort}
	case "spring", "springtime":
		return entry{kSeason, 0, flagAmbig}
	case "summer", "summertime":
		return entry{kSeason, 1, 0}
	case "autumn":
		return entry{kSeason, 2, 0}
	case "fall":
		return entry{kSeason, 2, flagAmbig}
	case "winter", "wintertime":
		return entry{kSeason, 3, 0}
	case "summers":
		return entry{kSeason, 1, flagPlural}
	case "winters":
		return entry{kSeason, 3, flagPlural}
	case "q1":
		return entry{kQuarter, 1, 0}
	case "q2":
		return entry{kQuarter, 2, 0}
	case "q3":
		return entry{kQuarter, 3, 0}
	case "q4":
		return entry{kQuarter, 4, 0}
	}
	if e := dayWord(w); e.kind != kEnd {
		return e
	}
	return unitWord(w)
}

// dayWord knows weekdays and days named by their distance.
func dayWord(w string) entry {
	switch w {
	case "monday":
		return entry{kWeekday, 0, 0}
	case "tuesday":
		return entry{kWeekday, 1, 0}
	case "wednesday":
		return entry{kWeekday, 2, 0}
	case "thursday":
		return entry{kWeekday, 3, 0}
	case "friday":
		return entry{kWeekday, 4, 0}
	case "saturday":
		return entry{kWeekday, 5, 0}
	case "sunday":
		return entry{kWeekday, 6, 0}
	case "mondays":
		return entry{kWeekday, 0, flagPlural}
	case "tuesdays":
		return entry{kWeekday, 1, flagPlural}
	case "wednesdays":
		return entry{kWeekday, 2, flagPlural}
	case "thursdays":
		return entry{kWeekday, 3, flagPlural}
	case "fridays":
		return entry{kWeekday, 4, flagPlural}
	case "saturdays":
		return entry{kWeekday, 5, flagPlural}
	case "sundays":
		return entry{kWeekday, 6, flagPlural}
	case "mon":
		return entry{kWeekday, 0, flagAmbig | flagShort}
	case "tue", "tues":
		return entry{kWeekday, 1, flagAmbig | flagShort}
	case "wed", "weds":
		return entry{kWeekday, 2, flagAmbig | flagShort}
	case "thu", "thur", "thurs":
		return entry{kWeekday, 3, flagAmbig | flagShort}
	case "fri":
		return entry{kWeekday, 4, flagAmbig | flagShort}
	case "sat":
		return entry{kWeekday, 5, flagAmbig | flagShort}
	case "sun":
		return entry{kWeekday, 6, flagAmbig | flagShort}
	case "today":
		return entry{kDay, 0, 0}
	case "yesterday":
		return entry{kDay, -1, 0}
	case "tomorrow":
		return entry{kDay, 1, 0}
	case "tonight":
		return entry{kTonight, 0, 0}
	case "halloween":
		return entry{kHoliday, holHalloween, 0}
	case "christmas", "xmas":
		return entry{kHoliday, holChristmas, 0}
	case "thanksgiving":
		return entry{kHoliday, holThanksgiving, 0}
	case "easter":
		return entry{kHoliday, holEaster, 0}
	case "juneteenth":
		return entry{kHoliday, holJuneteenth, 0}
	case "valentine", "valentines":
		return entry{kThanks, holValentine, 0}
	case "boxing":
		return entry{kThanks, holBoxing, 0}
	case "independence":
		return entry{kThanks, holIndependence, 0}
	case "memorial":
		return entry{kThanks, holMemorial, 0}
	case "labor", "labour":
		return entry{kThanks, holLabor, 0}
	case "mother", "mothers":
		return entry{kThanks, holMother, 0}
	case "father", "fathers":
		return entry{kThanks, holFather, 0}
	case "veterans":
		return entry{kThanks, holVeterans, 0}
	case "patrick":
		return entry{kThanks, holPatrick, 0}
	case "earth":
		return entry{kThanks, holEarth, 0}
	case "women":
		return entry{kThanks, holWomen, 0}
	case "fools":
		return entry{kThanks, holFools, 0}
	case "good":
		return entry{kThanks, holGoodFriday, 0}
	case "chinese", "lunar":
		return entry{kThanks, holSpringFestival, 0}
	case "new":
		return entry{kNew, 0, 0}
	}
	return entry{}
}

// unitWord knows units of time and parts of the day.
func unitWord(w string) entry {
	switch w {
	case "minute", "min":
		return entry{kUnit, uMinute, 0}
	case "minutes", "mins":
		return entry{kUnit, uMinute, flagPlural}
	case "second":
		return entry{kNumber, 2, flagOrdinal | flagSpelled | flagAmbig}
	case "seconds":
		return entry{kUnit, uSecond, flagPlural}
	case "hour", "hr":
		return entry{kUnit, uHour, 0}
	case "hours", "hrs":
		return entry{kUnit, uHour, flagPlural}
	case "day":
		return entry{kUnit, uDay, 0}
	case "days":
		return entry{kUnit, uDay, flagPlural}
	case "week", "wk":
		return entry{kUnit, uWeek, 0}
	case "weeks", "wks":
		return entry{kUnit, uWeek, flagPlural}
	case "weekend":
		return entry{kUnit, uWeekend, 0}
	case "weekends":
		return entry{kUnit, uWeekend, flagPlural}
	case "fortnight":
		return entry{kUnit, uFortnight, 0}
	case "fortnights":
		return entry{kUnit, uFortnight, flagPlural}
	case "month":
		return entry{kUnit, uMonth, 0}
	case "months":
		return entry{kUnit, uMonth, flagPlural}
	case "quarter":
		return entry{kUnit, uQuarter, 0}
	case "quarters":
		return entry{kUnit, uQuarter, flagPlural}
	case "year", "yr":
		return entry{kUnit, uYear, 0}
	case "years", "yrs":
		return entry{kUnit, uYear, flagPlural}
	case "decade":
		return entry{kUnit, uDecade, 0}
	case "decades":
		return entry{kUnit, uDecade, flagPlural}
	case "morning":
		return entry{kPart, partMorning, 0}
	case "mornings":
		return entry{kPart, partMorning, flagPlural}
	case "afternoon":
		return entry{kPart, partAfternoon, 0}
	case "afternoons":
		return entry{kPart, partAfternoon, flagPlural}
	case "evening", "eve":
		return entry{kPart, partEvening, 0}
	case "evenings":
		return entry{kPart, partEvening, flagPlural}
	case "night":
		return entry{kPart, partNight, 0}
	case "nights":
		return entry{kPart, partNight, flagPlural}
	case "noon", "midday":
		return entry{kNoon, 12, 0}
	case "midnight":
		return entry{kNoon, 0, 0}
	case "am":
		return entry{kMeridiem, 0, flagAmbig}
	case "pm":
		return entry{kMeridiem, 12, 0}
	case "o'clock", "oclock":
		return entry{kOclock, 0, 0}
	}
	return entry{}
}
