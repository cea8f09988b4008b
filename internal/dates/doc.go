// Package dates finds dates in text, in English and Chinese, and says how well a
// moment or another date fits them.
//
// It reads numeric dates ("2023-05-08", "8.5.2023"), names of months and weekdays
// ("8 May", "last Friday"), "today" and "yesterday", "last" and "next" before a
// unit, distances ("two weeks ago", "in 3 days"), and the same in Chinese. Each
// becomes a half-open range of whole days in the zone of a reference time, with a
// grain, a relation (on, before, after, …) and a confidence. A date that names no
// single time ("June" without a year, "Tuesdays") says how it repeats.
//
// Invariants:
//   - Everything is a pure function of its arguments: no clock, no configuration.
//   - Offsets are byte offsets in the caller's text, on UTF-8 boundaries. The dates
//     of one text are in order and do not overlap.
//   - The work is linear in the text: one scan, and a bounded look ahead.
//   - Weeks start on Monday. Years lie in 1000..2999.
//   - Nothing panics, whatever the bytes are.
//
// How it works: the scanner turns words of the lexicon, numbers and numeric dates
// into tokens. A table of shapes says which sequences of tokens are a date and how
// each is resolved.
//
// Not its job: clock times, holidays, seasons, durations ("for three years"), and
// calendars other than the Gregorian. They were measured to find nothing more; see
// decision 0016.
package dates
