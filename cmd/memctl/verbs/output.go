package verbs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rivo/uniseg"
)

// emit prints one answer: the document with --json, the ids with -q, else what
// human prints.
func (a *app) emit(doc any, ids []string, human func()) error {
	switch {
	case a.flags.json:
		return a.document(doc, a.sys.isTerminal(a.sys.out))
	case a.flags.quiet:
		for _, id := range ids {
			a.println(id)
		}
	default:
		human()
	}
	return nil
}

// document writes one JSON document, on one line unless it is for a screen.
func (a *app) document(doc any, indent bool) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return nil
}

// flush shows what a stream has printed so far.
func (a *app) flush() error {
	if err := a.out.Flush(); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// println and printf keep their errors until the flush at the end.
func (a *app) println(s string) { _, _ = a.out.WriteString(s + "\n") }

func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.out, format, args...) }

// next names the step that usually follows.
func (a *app) next(format string, args ...any) {
	a.println(a.paint("2", "next: "+a.here(fmt.Sprintf(format, args...))))
}

// note tells people something beside the answer.
func (a *app) note(format string, args ...any) {
	if !a.flags.json && !a.flags.quiet {
		_, _ = fmt.Fprintf(a.sys.err, format+"\n", args...)
	}
}

func (a *app) colour(stream any) bool {
	return a.sys.isTerminal(stream) && a.sys.getenv("NO_COLOR") == "" && a.sys.getenv("TERM") != "dumb"
}

// paint wraps s in an SGR code if standard output shows colours.
func (a *app) paint(sgr, s string) string { return paint(a.colour(a.sys.out), sgr, s) }

func (a *app) paintErr(sgr, s string) string { return paint(a.colour(a.sys.err), sgr, s) }

func paint(on bool, sgr, s string) string {
	if !on || sgr == "" || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

// columns is how many a line of the answer may take. It says where tables end that are
// not for a screen too, but there nothing is cut.
func (a *app) columns() int {
	if n, err := strconv.Atoi(a.sys.getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if a.sys.isTerminal(a.sys.out) {
		if w := a.sys.width(); w > 0 {
			return w
		}
	}
	return 120
}

// column is one column of a table.
type column struct {
	name  string
	right bool   // align to the right
	flex  bool   // gets what the others leave; at most one
	sgr   string // how to paint it
}

// table prints aligned rows. Cells are made safe and put on one line, on a screen that of
// the flexible column cut to fit. Elsewhere a longer one moves the rest of its row.
func (a *app) table(cols []column, rows [][]string) {
	cells := make([][]string, 0, len(rows)+1)
	head := make([]string, len(cols))
	for i, c := range cols {
		head[i] = c.name
	}
	cells = append(cells, head)
	for _, row := range rows {
		line := make([]string, len(cols))
		for i := range cols {
			line[i] = oneLine(row[i])
		}
		cells = append(cells, line)
	}
	widths := a.widths(cols, cells)
	for r, row := range cells {
		var sb strings.Builder
		for i, c := range cols {
			if i > 0 {
				sb.WriteString("  ")
			}
			text := a.cut(row[i], widths[i])
			pad := strings.Repeat(" ", max(0, widths[i]-uniseg.StringWidth(text)))
			sgr := c.sgr
			if r == 0 {
				sgr = "2"
			}
			switch {
			case c.right:
				sb.WriteString(pad + a.paint(sgr, text))
			case i == len(cols)-1:
				sb.WriteString(a.paint(sgr, text))
			default:
				sb.WriteString(a.paint(sgr, text) + pad)
			}
		}
		a.println(strings.TrimRight(sb.String(), " "))
	}
}

// widths gives each column its widest cell and the flexible one the rest of the
// line, but at least 20.
func (a *app) widths(cols []column, cells [][]string) []int {
	widths := make([]int, len(cols))
	flex, sum := -1, 2*(len(cols)-1)
	for i, c := range cols {
		for _, row := range cells {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
		if c.flex {
			flex = i
			continue
		}
		sum += widths[i]
	}
	if flex >= 0 {
		widths[flex] = min(widths[flex], max(20, a.columns()-sum))
	}
	return widths
}

// cut shortens s to a number of cells where the answer is for a screen.
func (a *app) cut(s string, width int) string {
	if !a.sys.isTerminal(a.sys.out) {
		return s
	}
	return cut(s, width)
}

// cut shortens s to a number of terminal cells.
func cut(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var sb strings.Builder
	used, state := 0, -1
	for len(s) > 0 {
		var cluster string
		var w int
		cluster, s, w, state = uniseg.FirstGraphemeClusterInString(s, state)
		if used+w > width-1 {
			break
		}
		sb.WriteString(cluster)
		used += w
	}
	return strings.TrimRight(sb.String(), " ") + "…"
}

// unsafeRune reports runes that could command a terminal or turn text around.
func unsafeRune(r rune) bool {
	return unicode.Is(unicode.Cc, r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// oneLine makes s safe for a terminal and puts it on one line.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == 0x2028 || r == 0x2029:
			return ' '
		case unsafeRune(r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// safe makes s safe for a terminal and keeps its lines.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unsafeRune(r) {
			return -1
		}
		return r
	}, s)
}

// count writes "1 memory" or "3 memories".
func count(n int, one, many string) string {
	return strconv.Itoa(n) + " " + plural(n, one, many)
}

// plural is the word for so many.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// sizeOf writes a number of bytes in the largest unit that it fills.
func sizeOf(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return strconv.FormatFloat(float64(n)/float64(u.size), 'f', 1, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}

// age writes how long ago t was, in the largest whole unit.
func (a *app) age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := a.sys.now().Sub(t)
	prefix := ""
	if d < 0 {
		d, prefix = -d, "in "
	}
	day := 24 * time.Hour
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{365 * day, "y"}, {30 * day, "mo"}, {7 * day, "w"}, {day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.unit {
			return prefix + strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return prefix + strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// clock writes a time for people, in their zone.
func (a *app) clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(a.sys.now().Location()).Format("2006-01-02 15:04:05")
}
