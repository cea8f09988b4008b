// Package report prints what a benchmark measured: one line that names the
// machine and one table in Markdown, the same on the terminal and in a file.
//
// Its job: rows with target, measured value and ratio; Markdown. Not its job:
// measuring, deciding which targets there are.
package report

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Table is a table with a header and rows of as many cells.
type Table struct {
	Title  string     `json:"title"`
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"`
	Notes  []string   `json:"notes,omitempty"` // printed below, as a list
}

// NewTargets returns an empty table of the shape what · target · measured ·
// ratio.
func NewTargets(title string) *Table {
	return &Table{Title: title, Header: []string{"what", "target", "measured", "ratio"}}
}

// AtLeast adds a row whose value should reach the target. detail, if not
// empty, follows the value.
func (t *Table) AtLeast(what string, target, value float64, unit, detail string) {
	t.row(what, "≥ "+withUnit(target, unit), withUnit(value, unit), detail, verdict(value, target, value >= target))
}

// AtMost adds a row whose value should not pass the target.
func (t *Table) AtMost(what string, target, value float64, unit, detail string) {
	t.row(what, "≤ "+withUnit(target, unit), withUnit(value, unit), detail, verdict(value, target, value <= target))
}

// Info adds a row without a target.
func (t *Table) Info(what string, value float64, unit, detail string) {
	t.row(what, "", withUnit(value, unit), detail, "")
}

// Failed adds a row for what could not be measured, and why.
func (t *Table) Failed(what, target string, err error) {
	t.row(what, target, "not measured: "+err.Error(), "", "not met")
}

// Note adds a line below the table.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (t *Table) row(what, target, measured, detail, ratio string) {
	if detail != "" {
		measured += " (" + detail + ")"
	}
	t.Rows = append(t.Rows, []string{what, target, measured, ratio})
}

func verdict(value, target float64, met bool) string {
	word := "met"
	if !met {
		word = "**not met**"
	}
	if target == 0 {
		return word
	}
	return Number(value/target) + " " + word
}

func withUnit(v float64, unit string) string {
	if unit == "" {
		return Number(v)
	}
	return Number(v) + " " + unit
}

// Number writes v with three significant digits, or as a whole number with
// commas from 1000 on.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	if math.Abs(v) < 999.5 {
		digits := 2
		if a := math.Abs(v); a >= 99.95 {
			digits = 0
		} else if a >= 9.995 {
			digits = 1
		} else if a < 0.9995 {
			digits = 3
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 {
		s = "-" + s
	}
	return s
}

// Millis is d in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Markdown writes the table, its columns aligned.
func (t *Table) Markdown() string {
	widths := make([]int, len(t.Header))
	for i, h := range t.Header {
		widths[i] = max(3, utf8.RuneCountInString(h))
	}
	for _, r := range t.Rows {
		for i := range min(len(r), len(widths)) {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell(r[i])))
		}
	}
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintf(&b, "### %s\n\n", t.Title)
	}
	line := func(cells []string) {
		b.WriteString("|")
		for i, w := range widths {
			s := ""
			if i < len(cells) {
				s = cell(cells[i])
			}
			b.WriteString(" " + s + strings.Repeat(" ", w-utf8.RuneCountInString(s)) + " |")
		}
		b.WriteString("\n")
	}
	line(t.Header)
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("-", w)
	}
	line(rule)
	for _, r := range t.Rows {
		line(r)
	}
	if len(t.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range t.Notes {
		b.WriteString("- " + n + "\n")
	}
	return b.String()
}

// cell makes s fit into one cell.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

// Write prints the machine's line and the tables to w, and to the file too if
// its name is not empty.
func Write(w io.Writer, file string, machine string, tables ...*Table) error {
	var b strings.Builder
	b.WriteString(machine + "\n")
	for _, t := range tables {
		b.WriteString("\n" + t.Markdown())
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
