// Package dates finds dates in a query, in English and Chinese, and says how well a
// moment fits them.
//
// It reads numeric dates ("2023-05-08", "8.5.2023"), names of months and weekdays
// ("8 May", "last Friday"), "today" and "yesterday", "last" and "next" before a
// unit, distances ("two weeks ago", "the week before 8 May"), and the same in
// Chinese. Each becomes a half-open range of whole days in the zone of a reference
// time, with a grain, a relation (on, before, after, …) and a confidence.
//
// Invariants:
//   - Everything is a pure function of its arguments: no clock, no configuration.
//   - Offsets are byte offsets in the caller's text, on UTF-8 boundaries. The dates
//     of one text are in order and do not overlap.
//   - The work is linear in the text: one scan, and a bounded look ahead.
//   - Weeks start on Monday. Years lie in 1000..2999.
//   - Nothing panics, whatever the bytes are.
//
// The scanner turns words of the lexicon, numbers and numeric dates into tokens. A
// table of shapes says which sequences of tokens are a date and how to resolve it.
//
// Not its job: clock times, holidays, seasons, durations ("for three years"), ranges
// of two dates, weekdays of every week, and other calendars than the Gregorian. They
// find nothing more in the judged questions (decision 0016).
package dates
