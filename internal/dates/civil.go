package dates

import "time"

const (
	minYear = 1000
	maxYear = 2999
	daySecs = 24 * 60 * 60
)

// civil is a wall-clock time in seconds since 1970-01-01 00:00 of no zone: every
// day has 24 hours. The zone enters when a range is handed out.
type civil int64

// span is a half-open range of wall-clock time. The empty span is none.
type span struct{ from, to civil }

func (s span) empty() bool { return s.from >= s.to }

func (s span) valid() bool {
	return !s.empty() && s.from >= dayCivil(dayOf(minYear, 1, 1)) && s.to <= dayCivil(dayOf(maxYear+1, 1, 1))
}

func dayCivil(day int) civil { return civil(day) * daySecs }

// day returns the number of days since 1970-01-01.
func (c civil) day() int {
	d := int(c / daySecs)
	if c%daySecs < 0 {
		d--
	}
	return d
}

// days returns the span of n days from day.
func days(day, n int) span { return span{dayCivil(day), dayCivil(day + n)} }

// dayOf numbers a date of the proleptic Gregorian calendar. Months beyond 1..12
// count into neighbouring years, days likewise into months.
// Formula: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
func dayOf(y, m, d int) int {
	y += floorDiv(m-1, 12)
	m = m - 12*floorDiv(m-1, 12)
	if m <= 2 {
		y--
		m += 12
	}
	era := floorDiv(y, 400)
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + d - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// dateOf is the inverse of dayOf (ibid., civil_from_days).
func dateOf(day int) (y, m, d int) {
	day += 719468
	era := floorDiv(day, 146097)
	doe := day - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = doy - (153*mp+2)/5 + 1
	m = mp + 3
	if m > 12 {
		m -= 12
	}
	y = yoe + era*400
	if m <= 2 {
		y++
	}
	return y, m, d
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// weekday returns 0 for Monday to 6 for Sunday.
func weekday(day int) int { return ((day+3)%7 + 7) % 7 }

// monday returns the first day of the week of day.
func monday(day int) int { return day - weekday(day) }

func monthDays(y, m int) int { return dayOf(y, m+1, 1) - dayOf(y, m, 1) }

// addMonths moves a day by n months; the last days of a long month become the
// last of a short one.
func addMonths(day, n int) int {
	y, m, d := dateOf(day)
	first := dayOf(y, m+n, 1)
	return first + min(d, dayOf(y, m+n+1, 1)-first) - 1
}

func monthSpan(y, m int) span { return span{dayCivil(dayOf(y, m, 1)), dayCivil(dayOf(y, m+1, 1))} }

func yearSpan(y int) span { return span{dayCivil(dayOf(y, 1, 1)), dayCivil(dayOf(y+1, 1, 1))} }

// civilOf reads the wall clock of t.
func civilOf(t time.Time) civil {
	y, m, d := t.Date()
	h, mi, s := t.Clock()
	return dayCivil(dayOf(y, int(m), d)) + civil(h*3600+mi*60+s)
}

// in returns the moment at which the clocks of loc show c.
func (c civil) in(loc *time.Location) time.Time {
	day := c.day()
	y, m, d := dateOf(day)
	return time.Date(y, time.Month(m), d, 0, 0, int(c-dayCivil(day)), 0, loc)
}

func (s span) in(loc *time.Location) Range {
	if s.empty() {
		return Range{}
	}
	return Range{s.from.in(loc), s.to.in(loc)}
}
