package hooks

import (
	"strings"
	"testing"
	"unicode/utf8"

	"mneme/memory"
)

// TestToolsTakeNoRoomOfAnExchange: what failed is kept beside three texts, and a command that runs a moment after it failed is another event.
func TestToolsTakeNoRoomOfAnExchange(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "I prefer tabs.\nI prefer vim.")
	w.prompt("one", strings.Repeat("The weather is nice today. ", 20)+"\n\nI like tabs a lot.\n\nI like vim a lot.\n\nI like Go a lot.")
	w.hook(ClaudeCode, "PostToolUseFailure", `{"session_id":"one","tool_input":{"command":"go get example.org/x"},"error":"unknown revision x"}`)
	w.atOnce(ClaudeCode, "PostToolUse", `{"session_id":"one","tool_input":{"command":"go get example.org/x"},"tool_response":{}}`)
	w.stored("I prefer tabs.\nI prefer vim.", "I like tabs a lot.", "I like vim a lot.", "I like Go a lot.", "`go get example.org/x` failed: unknown revision x", "Ran `go get example.org/x`.")
}

// TestAToolThatWasStoppedAsksNothing: whoever stopped it knows why.
func TestAToolThatWasStoppedAsksNothing(t *testing.T) {
	w := newWorld(t)
	w.hook(ClaudeCode, "PostToolUseFailure", `{"session_id":"one","tool_input":{"command":"make all"},"error":"killed in the middle","is_interrupt":true}`)
	if len(w.node.asked) != 0 {
		t.Errorf("asked for %q", w.node.asked)
	}
	w.hook(ClaudeCode, "PostToolUseFailure", `{"session_id":"one","tool_input":{"command":"make all"},"error":"killed in the middle"}`)
	if len(w.node.asked) != 1 {
		t.Errorf("asked for %q", w.node.asked)
	}
}

// TestPromptsThatNobodyWroteAreNotKept, but those that a program gives for somebody are.
func TestPromptsThatNobodyWroteAreNotKept(t *testing.T) {
	for source, kept := range map[string]bool{"": true, "user": true, "sdk": true, "hook": false, "system": false} {
		if got := keeps(&Event{Kind: Prompt, Source: source, Prompt: "I prefer tabs over spaces."}, true); (len(got) == 1) != kept {
			t.Errorf("from %q: %d kept", source, len(got))
		}
	}
}

// TestALongSessionIsCutBetweenCharacters: a node refuses half of one.
func TestALongSessionIsCutBetweenCharacters(t *testing.T) {
	for n := range 4 {
		got := conversation(&Event{Agent: ClaudeCode, Session: strings.Repeat("x", n) + strings.Repeat("会", 100)})
		if !utf8.ValidString(got) || len(got) > memory.MaxConversation || len(got) < memory.MaxConversation-2 || !strings.HasPrefix(got, ClaudeCode+"/"+strings.Repeat("x", n)+"会") {
			t.Errorf("%q of %d bytes", got, len(got))
		}
	}
}

// TestWhatWasGivenIsNotedOnce: what is noted of a conversation is bounded, and the oldest goes.
func TestWhatWasGivenIsNotedOnce(t *testing.T) {
	one := session{}
	one.give([]string{"a", "b", "a"})
	one.give([]string{"b", "c"})
	if got := strings.Join(one.Given, ""); got != "abc" {
		t.Errorf("noted %q", got)
	}
}
