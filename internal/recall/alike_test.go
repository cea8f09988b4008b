package recall

import "testing"

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
		{"", "", false}, {"...", "!!!", false}, {"a", "b", false},
	} {
		if got := Alike(c.a, c.b); (got >= Nearly) != c.near || got > 1.0001 {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}
