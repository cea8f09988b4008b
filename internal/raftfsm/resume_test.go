package raftfsm

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// stubborn is a machine that cannot apply commands whose keys begin with "bad", until it is
// told "skip=KEY", as what it is given with that key then.
type stubborn struct {
	*fileMachine
	skip map[string]bool
}

func (m *stubborn) Apply(entries []Entry) ([]any, error) {
	for i, e := range entries {
		k, _, _ := cut(e.Data)
		if !strings.HasPrefix(k, "bad") {
			continue
		}
		if !m.skip[k] {
			if _, err := m.fileMachine.Apply(entries[:i]); i > 0 && err != nil {
				return nil, err
			}
			return nil, &ApplyError{Index: e.Index, Err: fmt.Errorf("%s: %w", k, errBoom)}
		}
		entries[i].Data = []byte("skipped=" + k)
	}
	return m.fileMachine.Apply(entries)
}

func (m *stubborn) Resume(e Entry, halted error) bool {
	k, v, _ := cut(e.Data)
	if k != "skip" || !errors.Is(halted, errBoom) || !strings.Contains(halted.Error(), v) {
		return false
	}
	m.skip[v] = true
	return true
}

func openStubborn(t *testing.T, dir string) *shard {
	t.Helper()
	s := &shard{dir: dir, machine: newFileMachine(t, filepath.Join(dir, "state"))}
	var err error
	s.group, err = Open(Options{Dir: filepath.Join(dir, "raft"), ID: "n1", Bootstrap: true, NoSync: true, Machine: &stubborn{s.machine, map[string]bool{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.group.Close() })
	return s
}

// A group that had halted stayed so until the program was another one. What was agreed on
// behind the halt is applied, and after a start it comes to the same.
func TestHaltedGroupGoesOnByAgreement(t *testing.T) {
	dir := t.TempDir()
	s := openStubborn(t, dir).lead(t)
	ctx := testCtx(t)
	s.put(t, "k1=v1")
	put := Resumption{s.group}.Propose // a group that has halted refuses any other command before it is in the log
	futures := []*Future{put(ctx, []byte("bad1=x")), put(ctx, []byte("k2=v2")), put(ctx, []byte("bad2=x"))}
	for _, f := range futures {
		if err := waitErr(ctx, f); !errors.Is(err, ErrHalted) {
			t.Fatal(err)
		}
	}
	halted := s.group.HaltedCh()
	<-halted
	for _, other := range []string{"k=v", "skip=bad2"} { // no reason to go on
		if err := waitErr(ctx, Resumption{s.group}.Propose(ctx, []byte(other))); !errors.Is(err, ErrHalted) {
			t.Fatal(err)
		}
	}
	check := func(rows string) {
		t.Helper()
		got := s.machine.get()
		if text := fmt.Sprint(got.Rows); text != rows {
			t.Errorf("%s, want %s", text, rows)
		}
	}
	check("map[k1:v1]")
	// It halts again where it meets the next one.
	halt := (*HaltError)(nil)
	if err := waitErr(ctx, Resumption{s.group}.Propose(ctx, []byte("skip=bad1"))); !errors.As(err, &halt) || !strings.Contains(halt.Cause.Error(), "bad2") {
		t.Fatal(err)
	}
	check("map[k1:v1 k2:v2 skipped:bad1]")
	if now := (*HaltError)(nil); !errors.As(s.group.Halted(), &now) || now.Index != halt.Index {
		t.Errorf("%v, the command said %v", s.group.Halted(), halt)
	}
	s.close(t)

	// A start meets all of it again.
	s = openStubborn(t, dir)
	for !errors.Is(waitErr(ctx, Resumption{s.group}.Propose(ctx, []byte("k=v"))), ErrHalted) { // it may not lead yet
	}
	check("map[k1:v1 k2:v2 skipped:bad1]")
	if err := waitErr(ctx, Resumption{s.group}.Propose(ctx, []byte("skip=bad2"))); err != nil {
		t.Fatal(err)
	}
	s.lead(t) // the term begins, though it was halted when it was elected
	s.put(t, "k3=v3")
	check("map[k:v k1:v1 k2:v2 k3:v3 skip:bad2 skipped:bad2]")
	select {
	case <-s.group.HaltedCh():
		t.Error("a group that goes on says that it is halted")
	default:
	}
	want := s.machine.get()
	s.close(t)

	// So does who applies the log of a closed group, and a machine that begins anew.
	if err := errors.Join(s.machine.fs.RemoveAll(s.machine.dir)); err != nil {
		t.Fatal(err)
	}
	empty := newFileMachine(t, s.machine.dir)
	opt := s.group.opt
	opt.Machine, opt.Transport = &stubborn{empty, map[string]bool{}}, nil
	if err := CatchUp(opt); err != nil {
		t.Fatal(err)
	}
	if got := empty.get(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the log of a closed group leads to %v, want %v", got, want)
	}
}
