package sim

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var mutantsFlag = flag.Bool("sim.mutants", false, "put each known defect back and want the simulation to find it")

// mutant is a defect that there once was, or that a reader feared: in file, was is
// replaced by is.
//
// shape is the one that finds it soonest; "" = all are tried.
type mutant struct{ name, file, was, is, shape string }

var mutants = []mutant{
	{"no chain check", "internal/projections/advance.go",
		"if have, err := t.chainAt(r.Previous); err != nil || have != chain {",
		"if _, err := t.chainAt(r.Previous); err != nil {", ""},
	{"no chain check on a sequence that is used again", "internal/projections/advance.go",
		"if have, err := t.chainAt(r.Previous + uint64(known)); err != nil || have != chain {",
		"if _, err := t.chainAt(r.Previous + uint64(known)); err != nil {", ""},
	{"a sequence that is used again is not compared", "internal/eventlog/check.go",
		"if want, ok := e.Hashes(m.Seq); ok && want != events.Hash(sha256.Sum256(m.Data)) {",
		"if want, ok := e.Hashes(m.Seq); ok && want == (events.Hash(sha256.Sum256(nil))) {", ""},
	{"a repair fills behind what differs", "internal/eventlog/repair.go",
		"			if err == nil && !same {",
		"			if err == nil && false && !same {", ""},
	{"a read does not verify the leader", "internal/raftfsm/leader.go",
		"if err := s.VerifyLeader(ctx); err != nil {",
		"if err := error(nil); err != nil {", ""},
	{"a restore goes back", "internal/raftfsm/fsm.go",
		"if have, _ := f.machine.AppliedIndex(); have >= man.AppliedIndex && have != 0 {",
		"if false {", ""},
	{"votes after an error of the disk", "internal/raftfsm/logstore.go",
		"\t\ts.stable.refuse(err)\n",
		"", ""},
	{"a stale answer is taken for success", "internal/ingest/round.go",
		`	case !ok || !res.Done() || res.Cursor.Seq < p.end:
		err := fmt.Errorf("the range up to %d is %s of the state, which stands at %d", p.end, res.Answer, res.Cursor.Seq)
		r.answerUnknown(p.drafts, err)
		r.endRound(err)
	case res.Answer == projections.AnswerApplied && len(res.Events) == len(p.drafts):`,
		`	case !ok:
		r.endRound(fmt.Errorf("no answer"))
	case true:`, ""},
	{"what the log tells against the state is believed at once", "internal/ingest/round.go",
		"	return r.against.held < in.passing",
		"	return false", ""},
	{"a displaced frame of unknown outcome is refused", "internal/ingest/write.go",
		"	case s.doubt, r.phase == phaseEnded:",
		"	case r.phase == phaseEnded:", ""},
	{"a void frame of a higher term is adopted", "internal/ingest/write.go",
		"	case err != nil || f.Term < r.term:",
		"	case err != nil || !valid || f.Term < r.term:", ""},
	{"a refusal of the past is told", "internal/ingest/verdict.go",
		"	if w.opt.Current == nil || !restsOnState(err) {",
		"	if true {", ""},
	{"what a state of the past decided is told", "internal/ingest/verdict.go",
		"		if d.byState {",
		"		if d.byState && w == nil {", ""},
	{"a duplicate has the present epoch", "internal/projections/log_reads.go",
		"Epoch: v.p.epochs.Of(at.Seq)",
		"Epoch: v.p.cursor.Epoch", ""},
	{"a range does not wait for its keys", "internal/replica/keys.go",
		"index = max(index, projections.KeysOf(e.Data))",
		"index = max(index, 0*projections.KeysOf(e.Data))", "cluster3"},
	{"a range of a replay names no keys", "internal/ingest/replay.go",
		"r.Frames, r.Keys = frames, d.KeysIndex()",
		"r.Frames = frames", "cluster3"},
	{"a snapshot does not wait for its keys", "internal/replica/keys.go",
		"return binary.BigEndian.Uint64(b[1:]), nil",
		"return min(1, binary.BigEndian.Uint64(b[1:])), nil", "cluster3"},
	{"a node that has forgotten a promise takes part", "internal/cluster/promises.go",
		"if had := p.of[node][group]; !files[group].Keeps(had) {",
		"if had := p.of[node][group]; !files[group].Keeps(had) && had.Term == 0 {", "cluster3"},
	{"entries are no part of a promise", "internal/raftfsm/promise.go",
		"Index: max(p.Index, q.Index)}",
		"Index: p.Index}", "cluster3"},
	{"a leader of the past refuses a node", "internal/cluster/admission.go",
		"if _, err := a.group.LinearizableIndex(ctx); err != nil {",
		"if err := error(nil); err != nil {", "cluster5"},
	{"a destroyed key stays", "internal/keyring/machine.go",
		"		k.lookup.keys[id] = nil\n		if d == nil {",
		"		if d == nil {", "cluster3"},
	{"ended keys are not destroyed", "internal/ingest/erase.go",
		"if err == nil && !d.Combined() || errors.Is",
		"if err == nil && d.Combined() || errors.Is", "cluster3"},
	{"a snapshot has no membership", "internal/raftfsm/snapstore.go",
		"Servers: fromConfiguration(conf)}",
		"Servers: nil}", "cluster3"},
}

// The list of defects stays one of code that is there. With -sim.mutants each is
// put back, in a copy that only the compiler sees, and the simulation has to fail.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			file := filepath.Join(root, filepath.FromSlash(m.file))
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), m.was); n != 1 {
				t.Fatalf("%s has %d times: %s", m.file, n, m.was)
			}
			if *mutantsFlag {
				m.run(t, root, file, strings.Replace(string(source), m.was, m.is, 1))
			}
		})
	}
}

func (m mutant) run(t *testing.T, root, file, source string) {
	changed, overlay := filepath.Join(t.TempDir(), "changed.go"), filepath.Join(t.TempDir(), "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string]string{changed: source, overlay: string(list)} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", overlay, "-count=1", "./test/sim",
		"-run", "TestSimulation$", "-sim.for", forFlag.String(), "-sim.shape", m.shape)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	found := regexp.MustCompile(`run (\d+), .*`).FindString(string(out))
	if err == nil || found == "" {
		t.Fatalf("%s is not found: %v\n%s", m.name, err, out)
	}
	t.Log(found)
}
