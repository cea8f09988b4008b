package hooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/likeness"
	"mneme/memory"
)

// unwritable are disks that take nothing: what each is, and why.
var unwritable = map[string]func(t *testing.T, w *world) (d *Disk, why string){
	"a disk without room": func(t *testing.T, w *world) (*Disk, string) {
		d := w.disk()
		d.files = fullFiles{newLossy()}
		return d, errPower.Error()
	},
	"no folder for the spool": func(t *testing.T, w *world) (*Disk, string) {
		d := w.disk()
		spool := filepath.Join(w.dir, spoolDir)
		if err := errors.Join(os.RemoveAll(spool), os.WriteFile(spool, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return d, "not a directory"
	},
	"a full spool": func(t *testing.T, w *world) (*Disk, string) {
		d := w.disk()
		path := d.entryPath(entryName(1, "http://other:8787"))
		if err := errors.Join(os.RemoveAll(filepath.Join(w.dir, stateName)), os.WriteFile(path, nil, 0o600), os.Truncate(path, maxSpooledBytes)); err != nil {
			t.Fatal(err)
		}
		return d, errFull.Error()
	},
	"a lock that cannot be made": func(t *testing.T, w *world) (*Disk, string) {
		d := w.disk()
		spool := filepath.Join(w.dir, spoolDir)
		if err := errors.Join(os.RemoveAll(filepath.Join(w.dir, "lock")), os.Mkdir(filepath.Join(w.dir, "lock"), 0o700), os.RemoveAll(spool), os.WriteFile(spool, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return d, "not a directory"
	},
	"no key": func(*testing.T, *world) (*Disk, string) {
		return Unusable(memory.Errorf(memory.CodeInvalid, "the hooks' key: permission denied")), "the hooks' key: permission denied"
	},
}

// keeps is a hook that has the disk and keeps what is said, and is killed when its host would be answered.
func (w *world) keeps(d *Disk, session, prompt string) {
	w.t.Helper()
	e, err := Normalise(ClaudeCode, "UserPromptSubmit", []byte(toJSON(map[string]string{"session_id": session, "prompt": prompt})))
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.runner(ClaudeCode)
	r.Disk = d
	r.Keep(w.t.Context(), &e)
}

// TestWhatCouldNotBeSpooledWasLost, though the node was there. It goes to the node before the host is
// answered, which the log says without its text; what is like it is linked as ever.
func TestWhatCouldNotBeSpooledWasLost(t *testing.T) {
	for name, open := range unwritable {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.prompt("one", "I prefer tabs over spaces.")
			d, why := open(t, w)
			w.keeps(d, "two", "I prefer, tabs over spaces!")
			w.stored("I prefer tabs over spaces.", "I prefer, tabs over spaces!")
			if r := w.node.records[1]; len(r.DerivedFrom) != 1 || likeness.SaidOf(r.Metadata).Near != r.DerivedFrom[0] {
				t.Errorf("it is not linked: %+v", r)
			}
			if said := w.notes(); !strings.Contains(said, "1 capture could not be spooled and went to the node at "+testAddr+" directly: ") || !strings.Contains(said, why) || strings.Contains(said, "tabs") {
				t.Error(said)
			}
			r := w.runner(ClaudeCode)
			r.Disk = d
			if more := r.Send(t.Context()); more && name != "a full spool" {
				t.Error("something is to be sent")
			}
			if d.unusable != nil && strings.Contains(w.notes(), "send what was spooled") {
				t.Errorf("it is looked for there: %s", w.notes())
			}
			if c := w.disk().Counts(); c.Refused != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestWhatNeitherSpoolNorNodeTookIsSaid: nothing waits then, and said again it is kept where it can be.
func TestWhatNeitherSpoolNorNodeTookIsSaid(t *testing.T) {
	for name, open := range unwritable {
		for _, refusal := range []error{memory.Errorf(memory.CodeUnavailable, "cannot reach a node").WithHint("start one"), memory.Errorf(memory.CodeForbidden, "not you"), proxied(memory.CodeForbidden)} {
			t.Run(fmt.Sprint(name, ", ", refusal), func(t *testing.T) {
				w := newWorld(t)
				d, why := open(t, w)
				w.node.err = refusal
				const text = "Remember that deploys happen on Tuesdays."
				w.keeps(d, "one", text)
				said := w.notes()
				if !strings.Contains(said, "not kept: 1 capture, neither spooled (") || !strings.Contains(said, why) || !strings.Contains(said, ") nor taken by the node: "+refusal.Error()) {
					t.Error(said)
				}
				if strings.Contains(said, "wait") || strings.Contains(said, "directly") {
					t.Errorf("it is said to wait, or to be taken: %s", said)
				}
				w.node.set(func() { w.node.err = nil })
				w.keeps(d, "one", text)
				w.stored(text)
			})
		}
	}
}

// TestWhatTheNodeTookDirectlyIsNoNews: another hook is told the same a moment later.
func TestWhatTheNodeTookDirectlyIsNoNews(t *testing.T) {
	w := newWorld(t)
	d, _ := unwritable["no folder for the spool"](t, w)
	for range 2 {
		w.keeps(d, "one", "Remember that deploys happen on Tuesdays.")
	}
	if said := likeness.SaidOf(w.node.records[0].Metadata); len(w.node.records) != 1 || said.Repeats != 0 {
		t.Errorf("%d are stored, %+v", len(w.node.records), said)
	}
}

// TestANodeThatIsGoneIsNotAskedForEach: of three captures that cannot be spooled.
func TestANodeThatIsGoneIsNotAskedForEach(t *testing.T) {
	w := newWorld(t)
	d, _ := unwritable["no folder for the spool"](t, w)
	asked := 0
	r := w.runner(Codex)
	r.Disk, r.Node = d, slowNode{w.node}
	e, err := Normalise(Codex, "UserPromptSubmit", []byte(`{"session_id":"one","turn_id":"1","prompt":"`+strings.Repeat("The weather is nice today. ", 20)+`\n\nI prefer tabs.\n\nI prefer vim over emacs.\n\nI prefer small functions."}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Keep(t.Context(), &e)
	for line := range strings.Lines(w.notes()) {
		if strings.Contains(line, "not kept: 3 captures, ") && strings.Contains(line, "did not answer within 1s") {
			asked++
		}
	}
	if asked != 1 || !r.LeftAlone() {
		t.Errorf("left alone %v: %s", r.LeftAlone(), w.notes())
	}
}
