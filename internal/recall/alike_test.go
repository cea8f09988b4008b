package recall

import (
	"fmt"
	"math"
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
		{numbered(36), strings.Replace(numbered(36), "w17", "other", 1), true}, {numbered(24), strings.Replace(numbered(24), "w17", "other", 1), false}, // words and pairs, both count
		{"", "", false}, {"...", "!!!", false}, {"a", "b", false},
	} {
		if got := Alike(c.a, c.b); (got >= Nearly) != c.near || got > 1.0001 {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

// TestWordsAreComparedWithSeveral: what one text had says nothing of the next, and all are as alike as
// by counts of their own.
func TestWordsAreComparedWithSeveral(t *testing.T) {
	count := func(s string) map[string]float64 {
		all, before := map[string]float64{}, ""
		for _, w := range wordsOf(s) {
			all[w]++
			all[before+" "+w]++
			before = w
		}
		return all
	}
	texts := []string{"a b a b", "a b", "", "b a", "a a a", "c", "a b c a b", "部署在周二", "部署 在 周二 c"}
	for _, a := range texts {
		w := NewWords(a)
		for _, b := range append(texts, texts...) {
			x, y := count(a), count(b)
			var dot, xx, yy float64
			for k, n := range x {
				dot, xx = dot+n*y[k], xx+n*n
			}
			for _, n := range y {
				yy += n * n
			}
			want := 0.0
			if dot > 0 {
				want = dot / math.Sqrt(xx*yy)
			}
			if got := w.Alike(b); math.Abs(got-want) > 1e-12 || got != Alike(a, b) {
				t.Errorf("%q and %q: %v, want %v", a, b, got, want)
			}
		}
	}
}

// numbered is a text of so many words, each another one.
func numbered(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint("w", i))
	}
	return strings.Join(all, " ")
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

// TestOppositesWereRepeats: a memory was left out for one that has all its words, and says the opposite.
func TestOppositesWereRepeats(t *testing.T) {
	long := strings.Repeat("what the harbour master was told of the lights of the billing service, on which all rests, ", 3)
	chinese := strings.Repeat("关于港口计费服务的灯塔以及所有依赖它的系统，港务长当时是这样说的，大家都要记住，", 3)
	for _, c := range [][2]string{
		{"the port is 8443", "the port is no 8443"}, {"the port is 8443", "the port is not 8443"}, {"the port is 8443", "the port is 8443 no more"}, {"deploys happen on Fridays", "deploys never happen on Fridays"},
		{"it works with version 2", "it works with version 2 from version 3 on"}, {"it needs Go 1.25", "it needs Go 1.25 or 1.26"}, {"it ended on 3 March", "it ended on 3 March 2025"}, {"v1.2 is good", "v1.2.1 is good"},
		{"ann may write", "ann may only write"}, {"it is safe", "it is hardly safe"}, {"it is safe", "it was said that it is safe"}, {"it is safe", "it is safe unless it rains"},
		{"the port is 8443 and that of tests 9443", "the port is 9443 and that of tests 8443"}, {"rule 3 of team 1 holds", "rule 1 of team 3 holds"},
		{"ann may write and bob may not write", "ann may not write and bob may write"}, {"heron is newer than egret", "egret is newer than heron"},
		{"deploys happen on Fridays", "deploys happen on Fridays?"}, {"es ist sicher", "es ist nicht sicher"}, {"это безопасно", "это не безопасно"}, {"安全です", "安全ですか"},
		{"it failed", "it failed failed"}, {"it is safe", "it isn't safe"},
		{"it is every one's", "it is everyone's"}, {"هل هو آمن؟", "هل هو آمن"},
	} {
		fold(t, long+c[0], long+c[1], false)
		fold(t, c[0]+", "+long, c[1]+", "+long, false)
	}
	for _, c := range [][2]string{
		{"端口是8443", "端口不是8443"}, {"端口是8443", "端口是9443"}, {"周五部署", "周五不部署"}, {"周五部署", "周五从不部署"}, {"他去过北京", "他没去过北京"}, {"他去过北京", "他没有去过北京"},
		{"版本是1.2", "版本是1.2.1"}, {"三月五日", "三月十五日"}, {"三月五日", "三月五日之前"}, {"要备份", "别要备份"}, {"小王比小李高", "小李比小王高"}, {"周五部署。", "周五部署？"}, {"安全", "未必安全"},
	} {
		fold(t, chinese+c[0], chinese+c[1], false)
	}
	for _, c := range [][2]string{
		{"The port is 8443.", "the port is 8443!"}, {"“The port” is 8443", "the  port is\n8443"}, {"Ran `go get nats.go`.", "ran go get nats.go"}, {"端口是 8443。", "端口是8443"}, {"部署在周二上午", "部署，在周二上午。"},
		{"Is it safe?", "is it safe ?"}, {"", "!"}, {"It is sa\u200bfe.", "it\u00ad is safe"},
	} {
		fold(t, long+c[0], long+c[1], true)
	}
	fold(t, "...", "!!!", false) // they have no words
	fold(t, "!!!", "!!!", true)
}

// fold looks whether of two memories the better one stands for both, whichever that is.
func fold(t *testing.T, a, b string, want bool) {
	t.Helper()
	for _, c := range [][2]string{{a, b}, {b, a}} {
		block := Compose(answer(hit("a", c[0], 0.9), hit("b", c[1], 0.8)), DefaultLimit, 0)
		if got := len(block.Used) == 1; got != want || got && (len(block.Used[0].Same) != 1 || block.Used[0].Same[0] != "b") {
			t.Errorf("%v, want %v: %.12q … %q and %q", got, want, c[0], c[0][max(0, len(c[0])-60):], c[1][max(0, len(c[1])-60):])
		}
	}
}
