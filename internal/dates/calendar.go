package dates

import "time"

const (
	minYear = 1000
	maxYear = 2999
)

// span is a half-open range of days, counted from 0001-01-01. The empty span is none.
type span struct{ from, to int }

func (s span) empty() bool { return s.from >= s.to }

func (s span) valid() bool {
	return !s.empty() && s.from >= dayOf(minYear, 1, 1) && s.to <= dayOf(maxYear+1, 1, 1)
}

// in returns the range in a zone. A day begins when its clocks show midnight.
func (s span) in(loc *time.Location) Range {
	if s.empty() {
		return Range{}
	}
	return Range{midnightOf(s.from, loc), midnightOf(s.to, loc)}
}

func midnightOf(day int, loc *time.Location) time.Time {
	return time.Date(1, 1, 1+day, 0, 0, 0, 0, loc)
}

// dayOf numbers a date. Months beyond 1..12 count into neighbouring years, and
// days into neighbouring months.
func dayOf(y, m, d int) int {
	first := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	return int(time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Unix()-first) / (24 * 60 * 60)
}

// dateOf is the inverse of dayOf.
func dateOf(day int) (y, m, d int) {
	year, month, d := midnightOf(day, time.UTC).Date()
	return year, int(month), d
}

// dayIn returns the day that the clocks of t's zone show.
func dayIn(t time.Time) int {
	y, m, d := t.Date()
	return dayOf(y, int(m), d)
}

// weekday returns 0 for Monday to 6 for Sunday: 0001-01-01 was a Monday.
func weekday(day int) int { return day % 7 }

// monday returns the first day of the week of day.
func monday(day int) int { return day - weekday(day) }

// addMonths moves a day by n months. The last days of a long month become the last
// day of a short one.
func addMonths(day, n int) int {
	y, m, d := dateOf(day)
	first := dayOf(y, m+n, 1)
	return first + min(d, dayOf(y, m+n+1, 1)-first) - 1
}

func daySpan(day int) span     { return span{day, day + 1} }
func monthSpan(y, m int) span  { return span{dayOf(y, m, 1), dayOf(y, m+1, 1)} }
func yearSpan(y int) span      { return span{dayOf(y, 1, 1), dayOf(y+1, 1, 1)} }
func weekSpan(day int) span    { return span{monday(day), monday(day) + 7} }
func weekendSpan(day int) span { return span{monday(day) + 5, monday(day) + 7} }

// dateSpan returns the span of one date, empty if there is no such date.
func dateSpan(y, m, d int) span {
	if y < minYear || y > maxYear || m < 1 || m > 12 || d < 1 || d > dayOf(y, m+1, 1)-dayOf(y, m, 1) {
		return span{}
	}
	return daySpan(dayOf(y, m, d))
}
