package report

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0.000"}, {0.12345, "0.123"}, {0.9999, "1.00"}, {1, "1.00"}, {9.994, "9.99"}, {9.996, "10.0"}, {12.34, "12.3"},
		{99.96, "100"}, {123.4, "123"}, {999.6, "1,000"}, {1000, "1,000"}, {-1234567.8, "-1,234,568"}, {math.Inf(1), "+Inf"},
	} {
		if got := Number(c.v); got != c.want {
			t.Errorf("Number(%v) = %q, want %q", c.v, got, c.want)
		}
	}
	if Millis(1500*time.Microsecond) != 1.5 {
		t.Error("Millis")
	}
}

func TestMarkdown(t *testing.T) {
	table := NewTargets("Numbers")
	table.AtLeast("captures", 3000, 4500, "/s", "median of 3")
	table.AtMost("search p99", 10, 20, "ms", "")
	table.AtMost("zero", 0, 0, "", "")
	table.Info("size", 5, "MB", "")
	table.Failed("a|b", "≤ 1", errors.New("no\nluck"))
	table.Note("seed %d", 7)
	want := `### Numbers

| what       | target     | measured                 | ratio            |
| ---------- | ---------- | ------------------------ | ---------------- |
| captures   | ≥ 3,000 /s | 4,500 /s (median of 3)   | 1.50 met         |
| search p99 | ≤ 10.0 ms  | 20.0 ms                  | 2.00 **not met** |
| zero       | ≤ 0.000    | 0.000                    | met              |
| size       |            | 5.00 MB                  |                  |
| a\|b       | ≤ 1        | not measured: no luck    | not met          |

- seed 7
`
	want = strings.ReplaceAll(want, " (median of 3)   |", " (median of 3) |")
	got := table.Markdown()
	squeeze := func(s string) string { // widths are looked at below
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = strings.Join(strings.Fields(l), " ")
		}
		return strings.ReplaceAll(strings.Join(lines, "\n"), "-", "")
	}
	if squeeze(got) != squeeze(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	width := 0
	for _, l := range strings.Split(got, "\n") {
		if !strings.HasPrefix(l, "|") {
			continue
		}
		if n := len([]rune(l)); width == 0 {
			width = n
		} else if n != width {
			t.Errorf("line of %d runes among lines of %d: %s", n, width, l)
		}
	}
}

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.md")
	table := &Table{Header: []string{"a", "b"}, Rows: [][]string{{"only one"}}}
	var b bytes.Buffer
	if err := Write(&b, file, "2 cores", table); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil || string(data) != b.String() {
		t.Errorf("file holds %q (%v), want %q", data, err, b.String())
	}
	if !strings.HasPrefix(b.String(), "2 cores\n\n| a ") {
		t.Errorf("got %q", b.String())
	}
	if Write(&b, filepath.Join(file, "x"), "", table) == nil {
		t.Error("a file that cannot be written is no error")
	}
}

func TestMachine(t *testing.T) {
	if got := modelName("model name\t: Some  CPU @ 2 GHz"); got != "Some CPU @ 2 GHz" {
		t.Errorf("got %q", got)
	}
	if modelName("flags: x") != "" || modelName("nothing") != "" {
		t.Error("a line without a model has one")
	}
	if m := Machine(); !strings.Contains(m, "cores") || !strings.Contains(m, "go1") {
		t.Errorf("got %q", m)
	}
}

func TestJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	table := NewTargets("T")
	table.AtLeast("a", 1, 2, "s", "")
	table.Note("n")
	if err := WriteJSON(file, "2 cores", table); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(file)
	if err != nil || len(got) != 1 || got[0].Markdown() != table.Markdown() {
		t.Errorf("%v, %v", got, err)
	}
	if WriteJSON("", "x") != nil || WriteJSON(filepath.Join(file, "below"), "x") == nil {
		t.Error("no name writes nothing; a name below a file is an error")
	}
	if _, err := ReadJSON(file + "x"); err == nil {
		t.Error("a missing file is read")
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadJSON(file); err == nil {
		t.Error("half a file is read")
	}
}
