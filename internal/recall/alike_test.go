package recall

import (
	"strings"
	"testing"
)

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b string
		near bool
	}{
		{"Deploys happen on Tuesdays.", "deploys happen, on Tuesdays", true},
		{"部署在周二上午", "部署，在周二上午。", true},
		{"Deploys happen on Tuesdays.", "Deploys happen on Fridays.", false},
		{"部署在周二上午", "部署在周五上午", false},
		{"I prefer tabs", "I prefer tabs over spaces in Go and in shell scripts", false},
		{"rule 3 of team 1 holds", "rule 1 of team 3 holds", false},
		{"The lighthouse is well-kept (it's `lease.go`).", "the lighthouse is well kept: it's \"lease.go\"!", true},
		{"It holds > 30 s, at -5 degrees", "it holds >30 s at - 5 degrees.", true},
		{"", "", false}, {"...", "!!!", false}, {"a", "b", false},
	} {
		if got := Alike(c.a, c.b); (got >= Nearly) != c.near || got > 1.0001 {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

// TestSignsWereNoWords: texts that differ in a sign alone said the same, and a block left one of them out.
func TestSignsWereNoWords(t *testing.T) {
	long := strings.Repeat("what the harbour master was told of the lights of the billing service, on which all rests, ", 3)
	for _, c := range [][2]string{
		{"We write it in C++.", "We write it in C#."}, {"We write it in C++.", "We write it in C."}, {"It is -5 degrees.", "It is 5 degrees."},
		{"It takes > 30 s.", "It takes < 30 s."}, {"It takes ≥ 30 s", "It takes ≤ 30 s"}, {"x != 5", "x == 5"}, {"run if !ready", "run if ready"},
		{"a + b", "a - b"}, {"a+b", "a-b"}, {"at 1.5 bar", "at 5.1 bar"}, {"at 10:30", "at 30:10"}, {"5% of it", "5 of it"}, {"It costs $5", "It costs €5"},
		{"blood group A+", "blood group A-"}, {"read .env", "read env"}, {"We can't deploy", "We can deploy"}, {"deploys on Fridays 👍", "deploys on Fridays 👎"},
		{"气温是-5度", "气温是5度"}, {"温度＞30度", "温度＜30度"},
	} {
		for _, c := range [][2]string{c, {c[1], c[0]}} {
			if got := Alike(c[0], c[1]); got >= Nearly {
				t.Errorf("%q and %q: %v", c[0], c[1], got)
			}
			if b := Compose(answer(hit("a", long+c[0], 0.9), hit("b", long+c[1], 0.8)), DefaultLimit, 0); len(b.Used) != 2 {
				t.Errorf("%q and %q are one:\n%s", c[0], c[1], b.Text)
			}
		}
	}
	if b := Compose(answer(hit("a", "x < y", 0.9), hit("b", "x lt y", 0.8)), DefaultLimit, 0); len(b.Used) != 2 {
		t.Errorf("how a sign is quoted is taken for what was said:\n%s", b.Text)
	}
}
