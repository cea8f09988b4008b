package text

import (
	"strconv"
	"time"
)

// monthTerm returns the term of the month numbered by its decimal digits, or "".
func monthTerm(digits string) string {
	m, err := strconv.Atoi(digits)
	if err != nil || m < 1 || m > 12 {
		return ""
	}
	return lookup(time.Month(m).String()).term
}

// isoDate emits a date written 2023-05-08 (or with slashes) that starts at i: the
// whole, the year, the month's name and the day. It returns its end, or i.
func (a *analyzer) isoDate(i, end int) int {
	s := a.src[i:end]
	if len(s) < 10 || i > 0 && isAlnum(a.src[i-1]) {
		return i
	}
	sep := s[4]
	if sep != '-' && sep != '/' || s[7] != sep || len(s) > 10 && isDigit(s[10]) {
		return i
	}
	for k := range 10 {
		if k != 4 && k != 7 && !isDigit(s[k]) {
			return i
		}
	}
	month, day := monthTerm(s[5:7]), lookup(s[8:10]).term
	if month == "" || s[8:10] == "00" || s[8:10] > "31" {
		return i
	}
	whole := s[:10]
	if sep == '/' {
		whole = s[:4] + "-" + s[5:7] + "-" + s[8:10]
	}
	a.emit(whole, whole, KindWhole, i, i+10)
	a.emit(s[:4], s[:4], KindNumber, i, i+4)
	a.pos++
	a.emit(month, month, KindWord, i+5, i+7)
	a.pos++
	a.emit(day, day, KindNumber, i+8, i+10)
	a.pos++
	if len(s) > 11 && s[10] == 'T' && isDigit(s[11]) {
		return i + 11
	}
	return i + 10
}

// DateTerms returns the terms by which a date is found, in the zone of t: the year,
// the month's name, the day, the date as 2023-05-08, the year with the month as
// 2023-05, and the weekday.
func DateTerms(t time.Time) []string {
	year, month, day := t.Date()
	return []string{
		strconv.Itoa(year),
		lookup(month.String()).term,
		strconv.Itoa(day),
		t.Format(time.DateOnly),
		t.Format("2006-01"),
		lookup(t.Weekday().String()).term,
	}
}
