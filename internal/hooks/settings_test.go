package hooks

import (
	"testing"

	"mneme/memory"
)

// TestUnreadSettingsLostACapture: what is said waits until they can be read, and goes as they have it then.
func TestUnreadSettingsLostACapture(t *testing.T) {
	const told = "Remember that ann@example.com deploys on Tuesdays."
	for _, c := range []struct {
		set  func(*Settings)
		want []string
	}{
		{func(*Settings) {}, []string{"Remember that [redacted:email] deploys on Tuesdays.", "`go build` failed: undefined: x"}},
		{func(s *Settings) { s.Tools = false }, []string{"Remember that [redacted:email] deploys on Tuesdays."}},
		{func(s *Settings) { s.Scope = memory.ScopeAgent }, []string{"Remember that [redacted:email] deploys on Tuesdays.", "`go build` failed: undefined: x"}},
		{func(s *Settings) { s.Capture = false }, []string{}},
	} {
		w := newWorld(t)
		w.set = UnreadSettings()
		if out := w.prompt("one", told); out != "" {
			t.Errorf("it is answered %q", out)
		}
		w.hook(ClaudeCode, "PostToolUseFailure", `{"session_id":"one","tool_name":"Bash","tool_input":{"command":"go build"},"error":"undefined: x"}`)
		if w.stored(); w.disk().Waiting() != 2 {
			t.Errorf("%d wait\n%s", w.disk().Waiting(), w.notes())
		}
		w.set = DefaultSettings()
		c.set(&w.set)
		if got := w.drain("a"); got != (Drained{Sent: len(c.want), Refused: 2 - len(c.want)}) {
			t.Errorf("%+v\n%s", got, w.notes())
		}
		w.stored(c.want...)
		// It is the same as what is said from then on.
		if w.prompt("two", "Remember that [redacted:email] deploys on Tuesdays."); len(w.node.texts()) != len(c.want) {
			t.Errorf("%q", w.node.texts())
		}
		for _, r := range w.node.records {
			if r.Scope != w.set.Scope || r.ID != firstID(r.Scope, r.Kind, r.Text) {
				t.Errorf("%+v", r)
			}
		}
	}
}
