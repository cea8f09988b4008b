// Package dates finds expressions of time in text, in English and Chinese, and
// says how well a moment or another expression fits them.
//
// "last May", "on 3 June", "two weeks ago", "去年五月三号" and "下周四晚上七点" become
// half-open ranges in the zone of a reference time, with a granularity,
// a relation (in, before, after, …) and a confidence. What names no single time
// ("Tuesdays", "June" without a year) says how it repeats.
//
// Invariants:
//   - Everything is a pure function of its arguments: no clock, no configuration,
//     no state. Equal input gives equal output.
//   - Offsets are byte offsets in the caller's text, on UTF-8 boundaries; the
//     expressions of one text are in order and do not overlap.
//   - The work is linear in the text: one pass in a window of fixed size, and
//     every rule looks ahead over a bounded number of words.
//   - Calendar arithmetic counts days and wall-clock seconds, so that a change to
//     summer time moves nothing. Weeks start on Monday. Years lie in 1000..2999.
//   - Nothing panics, whatever the bytes are.
//
// How it works: the scanner cuts ASCII into words and numbers with their meaning
// from a lexicon; a recursive matcher without backtracking beyond one expression
// reads dates from them. Chinese, which needs no words, is read from the
// characters themselves.
//
// Not its job: scores of memories, durations ("for three years"), dates in
// calendars other than the Gregorian (lunar holidays are approximate months).
package dates
