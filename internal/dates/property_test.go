package dates

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// TestDaysAreTheCalendar: numbered days are those of package time.
func TestDaysAreTheCalendar(t *testing.T) {
	for at := time.Date(minYear, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() <= maxYear; at = at.AddDate(0, 0, 3) {
		d := dayIn(at)
		y, m, mday := dateOf(d)
		if dayOf(y, m, mday) != d || weekday(d) != (int(at.Weekday())+6)%7 || dayIn(at.Add(23*time.Hour)) != d || !midnightOf(d, time.UTC).Equal(at) {
			t.Fatalf("day %d: %d-%d-%d, want %v", d, y, m, mday, at)
		}
	}
	for _, test := range []struct{ from, want string }{
		{"2024-01-31 1", "2024-02-29"}, {"2023-01-31 1", "2023-02-28"}, {"2024-02-29 12", "2025-02-28"}, {"2024-03-31 -1", "2024-02-29"},
		{"2023-12-15 1", "2024-01-15"}, {"2023-01-15 -1", "2022-12-15"}, {"2023-05-31 -13", "2022-04-30"},
	} {
		var y, m, d, n int
		if _, err := fmt.Sscanf(test.from, "%d-%d-%d %d", &y, &m, &d, &n); err != nil {
			t.Fatal(err)
		}
		if got := midnightOf(addMonths(dayOf(y, m, d), n), time.UTC).Format(time.DateOnly); got != test.want {
			t.Errorf("%s: %s, want %s", test.from, got, test.want)
		}
	}
}

const daySecs = 24 * 60 * 60 // seconds

// formats write a date so that it must be read back as itself.
func formats() []func(time.Time) string {
	layout := func(l string) func(time.Time) string { return func(t time.Time) string { return t.Format(l) } }
	return []func(time.Time) string{
		layout("2 January 2006"), layout("January 2, 2006"), layout("2 Jan 2006"), layout("2006-01-02"),
		layout("2006/01/02"), layout("2006.1.2"), layout("2.1.2006"), layout("Monday, 2 January 2006"), layout("Mon, Jan 2, 2006"),
		layout("2006年1月2日"), layout("2006年01月02号"),
		layout("the 2 of January, 2006"), layout("Monday (2 January 2006)"),
		func(t time.Time) string { return ordinal(t.Day()) + " of " + t.Format("January 2006") },
		func(t time.Time) string { return t.Format("January ") + ordinal(t.Day()) + t.Format(", 2006") },
		func(t time.Time) string { return strings.Replace(t.Format("Jan. 2, 2006"), "May.", "May", 1) },
		hanDate,
		func(t time.Time) string { return fullWidth(t.Format("2006年1月2日")) },
	}
}

func ordinal(d int) string {
	switch {
	case d%10 == 1 && d != 11:
		return fmt.Sprint(d, "st")
	case d%10 == 2 && d != 12:
		return fmt.Sprint(d, "nd")
	case d%10 == 3 && d != 13:
		return fmt.Sprint(d, "rd")
	}
	return fmt.Sprint(d, "th")
}

var numerals = []rune("〇一二三四五六七八九")

func hanDate(t time.Time) string {
	var s strings.Builder
	for _, c := range t.Format("2006") {
		s.WriteRune(numerals[c-'0'])
	}
	return s.String() + "年" + hanTens(int(t.Month())) + "月" + hanTens(t.Day()) + "日"
}

func hanTens(n int) string {
	s := ""
	if n >= 20 {
		s = string(numerals[n/10])
	}
	if n >= 10 {
		s += "十"
	}
	if n%10 > 0 {
		s += string(numerals[n%10])
	}
	return s
}

func fullWidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r - '0' + '０'
		}
		return r
	}, s)
}

func TestFormattedDatesReadBack(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	sentences := []string{"%s", "We met on %s.", "(%s)", "What happened on %s, and why?", "于%s见面", "日期：%s。", "see\t%s\nand"}
	for range 3000 {
		d := time.Unix(int64(r.IntN(130*365)-10*365)*daySecs, 0).UTC() // 1960 to 2090
		for i, format := range formats() {
			text := fmt.Sprintf(sentences[r.IntN(len(sentences))], format(d))
			out := Parse(text, reference())
			if len(out) != 1 || !out[0].From.Equal(d) || !out[0].To.Equal(d.AddDate(0, 0, 1)) || out[0].Grain != GrainDay || out[0].Yearly || out[0].Confidence < 0.9 {
				t.Fatalf("seed %d, format %d: %q read as %v", seed, i, text, out)
			}
		}
	}
}

// TestDistancesReadBack: "n days ago" and its like are the days of package time.
func TestDistancesReadBack(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		ref := time.Unix(int64(r.IntN(80*365))*daySecs+int64(r.IntN(daySecs)), 0).UTC()
		today := ref.Truncate(24 * time.Hour)
		n := 2 + r.IntN(300)
		for text, want := range map[string]time.Time{
			fmt.Sprintf("%d days ago", n): today.AddDate(0, 0, -n), fmt.Sprintf("%d days later", n): today.AddDate(0, 0, n),
			fmt.Sprintf("%d天前", n): today.AddDate(0, 0, -n), fmt.Sprintf("%d天以后", n): today.AddDate(0, 0, n),
			"yesterday": today.AddDate(0, 0, -1), "明天": today.AddDate(0, 0, 1),
		} {
			out := Parse(text, ref)
			if len(out) != 1 || !out[0].From.Equal(want) || !out[0].To.Equal(want.AddDate(0, 0, 1)) {
				t.Fatalf("seed %d: %q at %v: %v, want %v", seed, text, ref, out, want)
			}
		}
		for text, has := range map[string]time.Time{
			fmt.Sprintf("%d weeks ago", n): today.AddDate(0, 0, -7*n), fmt.Sprintf("%d周前", n): today.AddDate(0, 0, -7*n),
			"last week": today.AddDate(0, 0, -7), "下周": today.AddDate(0, 0, 7), "this year": today, "本月": today,
		} {
			out := Parse(text, ref)
			if len(out) != 1 || out[0].From.After(has) || !out[0].To.After(has) {
				t.Fatalf("seed %d: %q at %v: %v does not hold %v", seed, text, ref, out, has)
			}
		}
	}
}

// TestPlaceDoesNotMatter: what is found in a sentence does not depend on what
// stands before it or how far into the text it is.
func TestPlaceDoesNotMatter(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	sentences := []string{
		"Maria went there in the week before August 3, 2023.", "It was between March and May 2022.", "Two or three weeks ago she left.",
		"她去年五月三号晚上八点半离开。", "从2023年3月到5月都在。", "On the evening of 7 July, 2023 it rained.", "Mid-July, or the last Friday of June 2021.",
		"A year and a half ago, on 1:56 pm on 8 May, 2023.", "twenty-first of May to the 3rd of June.",
	}
	for range 500 {
		s := sentences[r.IntN(len(sentences))]
		pad := strings.Repeat([]string{"word, ", "Some words stand here. ", "字。", "x-y_z ", "\n\n"}[r.IntN(5)], r.IntN(300)) + "\n"
		want, got := Parse("\n"+s, reference()), Parse(pad+s, reference())
		if len(got) != len(want) {
			t.Fatalf("seed %d: %q after %d bytes: %v, want %v", seed, s, len(pad), got, want)
		}
		for i := range got {
			got[i].Start -= len(pad) - 1
			got[i].End -= len(pad) - 1
			if got[i] != want[i] {
				t.Fatalf("seed %d: %q after %d bytes: %v, want %v", seed, s, len(pad), got[i], want[i])
			}
		}
	}
}

// TestZones: ranges are days of the reference's zone, also when a day has 23 or
// 25 hours.
func TestZones(t *testing.T) {
	for zone, days := range map[string][]string{
		"Europe/Berlin": {"2023-03-26", "2023-10-29"}, "America/New_York": {"2023-03-12", "2023-11-05"}, "Asia/Shanghai": {"2023-05-08"},
	} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range days {
			at, err := time.ParseInLocation(time.DateOnly, d, loc)
			if err != nil {
				t.Fatal(err)
			}
			next := time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, loc)
			for text, ref := range map[string]time.Time{
				"today": at.Add(12 * time.Hour), "yesterday": at.Add(36 * time.Hour), "前天": at.Add(60 * time.Hour), "tomorrow": at.Add(-8 * time.Hour),
				at.Add(6 * time.Hour).Format("2 January 2006"): at.AddDate(1, 0, 0),
			} {
				out := Parse(text, ref)
				if len(out) != 1 || !out[0].From.Equal(at) || !out[0].To.Equal(next) || out[0].From.Location() != loc {
					t.Errorf("%s %q at %v: %v, want %v", zone, text, ref, out, at)
				}
				if Overlap(out[0], at.Add(time.Hour)) != 1 || Overlap(out[0], next) == 1 || Overlap(out[0], at.Add(-time.Second)) == 1 {
					t.Errorf("%s %q: overlap at the edges", zone, text)
				}
			}
		}
	}
}

func TestYearsAreBounded(t *testing.T) {
	for _, text := range []string{"5000 years ago", "in 0999", "0000-01-01", "3000-01-01", "yesterday"} {
		if out := Parse(text, time.Date(999, 1, 1, 0, 0, 0, 0, time.UTC)); len(out) > 0 {
			t.Errorf("%q in year 999: %v", text, out)
		}
		if out := Parse(text+" and before this year", time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC)); len(out) > 0 {
			t.Errorf("%q in year 1000: %v", text, out)
		}
	}
}
