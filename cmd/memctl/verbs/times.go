package verbs

import (
	"strconv"
	"strings"
	"time"

	"mneme/memory"
)

// timeLayouts are the dates that are read in the user's zone.
var timeLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006-01"}

// parseTime reads a time as people write it: RFC 3339; a date with or without a
// time, in now's zone; how long ago ("90s", "2h", "1h30m", "7d", "2w", each with
// or without "ago"); now, today or yesterday, which begin at midnight.
func parseTime(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch strings.ToLower(s) {
	case "now":
		return now, nil
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	if t, ok := ago(s, now); ok {
		return t, nil
	}
	return time.Time{}, memory.Errorf(memory.CodeInvalid, "%q is not a time", s).
		WithHint(`times are RFC 3339, dates like 2024-05-08, "2h", "7d", "today" or "yesterday"`)
}

// ago reads "7d" and the like. Days and weeks follow the calendar, so that "1d"
// is the same time of day also when clocks change.
func ago(s string, now time.Time) (time.Time, bool) {
	s = strings.TrimSpace(strings.TrimSuffix(strings.ToLower(s), "ago"))
	if n := len(s); n > 1 && (s[n-1] == 'd' || s[n-1] == 'w') {
		days, err := strconv.Atoi(s[:n-1])
		if err != nil || days < 0 || days > 200_000 {
			return time.Time{}, false
		}
		if s[n-1] == 'w' {
			days *= 7
		}
		return now.AddDate(0, 0, -days), true
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || s[0] == '+' || s[0] == '-' {
		return time.Time{}, false
	}
	return now.Add(-d), true
}

// timeFlag is a flag that holds a time; the zero time means not given.
type timeFlag struct {
	now func() time.Time
	t   time.Time
}

func (f *timeFlag) Set(s string) error {
	t, err := parseTime(s, f.now())
	f.t = t
	return err
}

func (f *timeFlag) Type() string { return "time" }

func (f *timeFlag) String() string {
	if f == nil || f.t.IsZero() {
		return ""
	}
	return f.t.Format(time.RFC3339)
}

// ptr returns the time, or nil if it was not given.
func (f *timeFlag) ptr() *time.Time {
	if f.t.IsZero() {
		return nil
	}
	t := f.t
	return &t
}
