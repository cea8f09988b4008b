package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// TestTheStateIsBounded: what is oldest goes.
func TestTheStateIsBounded(t *testing.T) {
	d := newWorld(t).disk()
	for i := range maxSessions + 3 {
		now := testNow.Add(time.Duration(i) * time.Second)
		err := d.change(t.Context(), now, func(s *state) error {
			one := s.session(&Event{Agent: ClaudeCode, Session: fmt.Sprint(i)}, now)
			for m := range maxGiven + 3 {
				one.give([]string{fmt.Sprint(m)})
				one.say(fmt.Sprint(m))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := d.change(t.Context(), testNow, func(s *state) error {
		for i := range maxCooling + 3 {
			s.cool(fmt.Sprint(i), testNow)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := d.state()
	if len(s.Sessions) != maxSessions || s.Sessions[sessionKey(&Event{Agent: ClaudeCode, Session: "2"})] != nil || s.Sessions[sessionKey(&Event{Agent: ClaudeCode, Session: "3"})] == nil {
		t.Errorf("%d sessions", len(s.Sessions))
	}
	if given := s.Sessions[sessionKey(&Event{Agent: ClaudeCode, Session: "3"})].Given; len(given) != maxGiven || given[0] != "3" {
		t.Errorf("%d given, from %s", len(given), given[0])
	}
	if said := s.Sessions[sessionKey(&Event{Agent: ClaudeCode, Session: "3"})].Said; len(said) != maxGiven || said[0] != markOf("3") {
		t.Errorf("%d said, from %s", len(said), said[0])
	}
	if len(s.Cooling) != maxCooling {
		t.Errorf("%d cool down", len(s.Cooling))
	}
}

// TestConversationsOfTwoHostsAreTwo, whatever they call them.
func TestConversationsOfTwoHostsAreTwo(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	w.prompt("s", "when do deploys happen?")
	if out := w.hook(Codex, "UserPromptSubmit", `{"session_id":"s","prompt":"when do deploys happen?"}`); !strings.Contains(out, "Tuesdays") {
		t.Errorf("%q", out)
	}
}

// TestTheJournalAndTheLogAreBounded, and nobody else's.
func TestTheJournalAndTheLogAreBounded(t *testing.T) {
	d := newWorld(t).disk()
	for i := range maxJournal + 3 {
		if err := d.journalLocked(Recalled{Query: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := d.Recalls(); err != nil || len(all) != maxJournal || all[0].Query != "3" {
		t.Errorf("%d recalls, %v", len(all), err)
	}
	long := strings.Repeat("x", maxLog)
	for range 3 {
		AppendLog(d.dir, long, testNow)
	}
	for _, name := range []string{"log", "log.1"} {
		if info, err := os.Stat(filepath.Join(d.dir, name)); err != nil || info.Size() > maxLog+100 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestTheSpoolCountsWhatIsPutIntoItAtOnce.
func TestTheSpoolCountsWhatIsPutIntoItAtOnce(t *testing.T) {
	d := newWorld(t).disk()
	var all []Entry
	for range 3 {
		all = append(all, Entry{Addr: testAddr, Namespace: "team-a", Item: memory.Capture{Text: strings.Repeat("x", maxSpooledBytes/3)}})
	}
	if kept, err := d.spoolLocked(&state{}, all); kept != 2 || !errors.Is(err, errFull) {
		t.Errorf("%d are kept, %v", kept, err)
	}
}
