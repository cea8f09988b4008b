package dates

// holiday names a day, or a few, of every year.
type holiday int

const (
	holNewYear = iota
	holNewYearsEve
	holValentine
	holWomen
	holPatrick
	holFools
	holEarth
	holMayDay
	holMother
	holMemorial
	holChildren
	holJuneteenth
	holFather
	holIndependence
	holArmy
	holLabor
	holTeachers
	holNationalCN
	holHalloween
	holVeterans
	holSinglesDay
	holDoubleTwelve
	holThanksgiving
	holChristmasEve
	holChristmas
	holBoxing
	holYouth
	holTreePlanting
	holEaster
	holGoodFriday
	holQingming
	holWinterSolstice
	// The lunar ones.
	holSpringFestival
	holSpringEve
	holLantern
	holDragonBoat
	holQixi
	holMidAutumn
	holDoubleNinth
	holLaba
)

// fixed returns month and day of a holiday that has the same every year.
func (h holiday) fixed() (month, day int) {
	days := [...][2]int{
		holNewYear: {1, 1}, holNewYearsEve: {12, 31}, holValentine: {2, 14}, holWomen: {3, 8}, holPatrick: {3, 17},
		holFools: {4, 1}, holEarth: {4, 22}, holMayDay: {5, 1}, holChildren: {6, 1}, holJuneteenth: {6, 19},
		holIndependence: {7, 4}, holArmy: {8, 1}, holTeachers: {9, 10}, holNationalCN: {10, 1}, holHalloween: {10, 31},
		holVeterans: {11, 11}, holSinglesDay: {11, 11}, holDoubleTwelve: {12, 12}, holChristmasEve: {12, 24}, holChristmas: {12, 25}, holBoxing: {12, 26},
		holYouth: {5, 4}, holTreePlanting: {3, 12}, holLaba: {},
	}
	return days[h][0], days[h][1]
}

// span returns the holiday of a year.
func (h holiday) span(y int) span {
	if m, d := h.fixed(); m > 0 {
		if h == holNationalCN {
			return days(dayOf(y, m, d), 7)
		}
		return days(dayOf(y, m, d), 1)
	}
	switch h {
	case holMother:
		return days(nthWeekday(y, 5, 6, 2), 1)
	case holFather:
		return days(nthWeekday(y, 6, 6, 3), 1)
	case holMemorial:
		return days(nthWeekday(y, 6, 0, 1)-7, 1)
	case holLabor:
		return days(nthWeekday(y, 9, 0, 1), 1)
	case holThanksgiving:
		return days(nthWeekday(y, 11, 3, 4), 1)
	case holEaster:
		return days(easter(y), 1)
	case holGoodFriday:
		return days(easter(y)-2, 1)
	case holQingming:
		return days(dayOf(y, 4, 4), 2)
	case holWinterSolstice:
		return days(dayOf(y, 12, 21), 2)
	}
	return h.lunar(y)
}

// nthWeekday returns the n-th weekday w of a month.
func nthWeekday(y, month, w, n int) int {
	first := dayOf(y, month, 1)
	return first + (w-weekday(first)+7)%7 + 7*(n-1)
}

// easter returns Easter Sunday of the Gregorian calendar.
// Formula: Meeus, "Astronomical Algorithms", chapter 8.
func easter(y int) int {
	a, b, c := y%19, y/100, y%100
	d, e := b/4, b%4
	g := (8*b + 13) / 25
	h := (19*a + b - d - g + 15) % 30
	i, k := c/4, c%4
	l := (32 + 2*e + 2*i - h - k) % 7
	m := (a + 11*h + 19*l) / 433
	month := (h + l - 7*m + 90) / 25
	return dayOf(y, month, (h+l-7*m+33*month+19)%32)
}

// newYearMoon returns the lunar new year to a day or two: the moon repeats its
// dates after 19 years (the Metonic cycle), here those from 2000.
func newYearMoon(y int) int {
	fromJanuary := [19]int{35, 23, 42, 31, 21, 39, 28, 48, 37, 25, 44, 33, 22, 40, 30, 49, 38, 27, 46}
	return dayOf(y, 1, 1) + fromJanuary[((y-2000)%19+19)%19]
}

// lunar returns a holiday of the Chinese calendar with a day's tolerance. A leap
// month before it shows in that the plain count comes out before its season.
func (h holiday) lunar(y int) span {
	spring := newYearMoon(y)
	far, month, day := 0, 1, 1 // days after the new year; the earliest date
	switch h {
	case holSpringFestival:
		return days(spring-1, 8)
	case holSpringEve:
		return days(spring-2, 3)
	case holLantern:
		return days(spring+13, 3)
	case holDragonBoat:
		far, month, day = 122, 5, 28
	case holQixi:
		far, month, day = 183, 7, 31
	case holMidAutumn:
		far, month, day = 221, 9, 8
	case holDoubleNinth:
		far, month, day = 244, 10, 2
	case holLaba:
		return days(newYearMoon(y)-23, 3)
	}
	at := spring + far
	if at < dayOf(y, month, day) {
		at += 30
	}
	return days(at-1, 3)
}

func (h holiday) grain() Grain {
	if h == holSpringFestival || h == holNationalCN {
		return GrainWeek
	}
	return GrainDay
}

// trust is less for what is approximate.
func (h holiday) trust() float64 {
	if h >= holSpringFestival {
		return 0.7
	}
	return 1
}

// holidayName reads a holiday's name at i, or returns -1.
func (p *parser) holidayName(i int) (holiday, int) {
	t, n := p.at(i), p.at(i+1)
	eve := n.kind == kPart && n.end-n.start == 3
	day := n.kind == kUnit && n.val == uDay && !n.is(flagPlural)
	switch t.kind {
	case kHoliday:
		h := holiday(t.val)
		switch {
		case h == holChristmas && eve:
			return holChristmasEve, i + 2
		case day || eve:
			return h, i + 2
		}
		return h, i + 1
	case kThanks:
		h := holiday(t.val)
		switch {
		case h == holGoodFriday:
			if n.kind == kWeekday && n.val == 4 && n.is(flagUpper) && t.is(flagUpper) {
				return h, i + 2
			}
		case h == holSpringFestival:
			if n.kind == kNew && p.at(i+2).kind == kUnit && p.at(i+2).val == uYear {
				return h, i + 3
			}
		case day:
			return h, i + 2
		}
	case kNew:
		if n.kind != kUnit || n.val != uYear {
			return -1, i
		}
		d := p.at(i + 2)
		switch {
		case d.kind == kPart && d.end-d.start == 3:
			return holNewYearsEve, i + 3
		case d.kind == kUnit && d.val == uDay:
			return holNewYear, i + 3
		case n.is(flagOwner|flagPlural) && d.kind != kWord:
			return holNewYear, i + 2
		}
	}
	return -1, i
}

// holidayFirst reads "Christmas 2022", "New Year's Eve", "Thanksgiving last year".
func (p *parser) holidayFirst(i int) (match, int) {
	h, j := p.holidayName(i)
	if h < 0 {
		return match{}, i
	}
	if y, next := p.yearAt(j, true); next > j {
		return match{span: h.span(y), grain: h.grain(), conf: 0.95 * h.trust()}, next
	}
	return p.yearly(h.span, h.grain(), 0.85*h.trust()), j
}
