// Package judged reads sets of memories with judged questions: LoCoMo,
// MemDaily, BEAM, RealMem, DevMem and PrecisionMem, and that of a team of agents
// in bench/sets; and makes two of its own out of what is on the machine,
// identifiers and long texts among short ones.
//
// Its job: find the data on this machine, turn each set into captures by
// namespace and questions with the ids of the captures that answer them, and
// count what is odd in the files.
//
// Invariants: a unit of evidence is the id of a capture; what a question names
// twice counts once; evidence that points nowhere stays, so that it weighs on
// recall.
//
// Not its job: talking to a node, scoring (package stats).
package judged

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf8"

	"mneme/memory"
)

// loaders has the sets in the order in which they are measured. A loader gets
// the data folder, which is empty if there is none.
var loaders = []struct {
	name string
	load func(ctx context.Context, dir string) (*Set, error)
}{
	{"locomo", inFolder("locomo", func(dir string) (*Set, error) { return loadLocomo(filepath.Join(dir, "dev.json")) })},
	{"memdaily", inFolder("memdaily", loadMemDaily)},
	{"memdaily-pooled", inFolder("memdaily", pooled("memdaily-pooled", func(question, _ string) string { return question }))},
	{"memdaily-timed", inFolder("memdaily", pooled("memdaily-timed", func(question, at string) string { return question + " " + at }))},
	{"memdaily-asked", inFolder("memdaily", pooled("memdaily-asked", func(question, at string) string { return question + "（提问时间：" + at + "）" }))},
	{"beam", inFolder("beam", loadBeam)},
	{"realmem", inFolder("realmem", loadRealMem)},
	{"devmem", inFolder("devmem", loadDevMem)},
	{"precision", inFolder("precision", loadPrecision)},
	{"identifiers", loadIdentifiers},
	{"long", loadLong},
	{"agents", loadAgents(false)},
	{Sealed, loadAgents(true)},
}

// Sealed is the set of questions that nobody looks at while something is tuned.
const Sealed = "agents-sealed"

// Names lists the sets that Load reads.
func Names() []string {
	names := make([]string, len(loaders))
	for i, l := range loaders {
		names[i] = l.name
	}
	return names
}

// inFolder loads a set from a folder of the data.
func inFolder(folder string, load func(string) (*Set, error)) func(context.Context, string) (*Set, error) {
	return func(_ context.Context, dir string) (*Set, error) {
		if dir == "" {
			return nil, ErrNoData
		}
		return load(filepath.Join(dir, folder))
	}
}

// ErrNoData is returned when a set's files are not on this machine.
var ErrNoData = errors.New("data not found")

// Scoring says what is measured of the answers to a set's questions.
type Scoring int

// The kinds of scoring.
const (
	Units    Scoring = iota // which share of the evidence is among the first results
	Stream                  // that, and which share of the conversations that hold it
	Sessions                // which share of the conversations; nothing where there is nothing
	Exact                   // whether what came back is what was wanted, and no more
	First                   // whether one that is right comes first, or soon
)

// Set is one set of judged questions.
type Set struct {
	Name       string
	Scoring    Scoring
	Streamed   bool // each question is asked when Question.After captures were sent
	Namespaces []Namespace
	Counts     Counts
}

// Namespace is what belongs together: memories and questions about them.
type Namespace struct {
	Name      string
	Captures  []memory.Capture // each with an id of its own
	Questions []Question
}

// Question is one question and what answers it.
type Question struct {
	Text     string
	Category string
	// Group is the same for questions that hang together: those about one
	// conversation, as a rule. It is by groups that intervals draw questions.
	Group    string
	Evidence []string // ids of the captures that hold the answer, distinct
	May      []string // ids of captures that are neither right nor wrong, distinct; not with Stream or Sessions
	Sessions []string // the conversations that hold it, distinct, oldest first; only where these are judged
	Nothing  bool     // no memory answers it, so that nothing should be found
	Apart    bool     // not part of the set's mean: it has no answer in the memories
	Session  string   // the conversation in which it is asked, which is none that was found
	After    int      // in a streamed set: how many captures of the namespace come before it
	Filter   *memory.Filter
}

// Scored reports whether an answer to the question can be scored.
func (q *Question) Scored(s Scoring) bool {
	return len(q.Evidence) > 0 || len(q.Sessions) > 0 || q.Nothing || s == Exact
}

// Counts are the oddities of a set.
type Counts struct {
	Captures, Questions int
	NoEvidence          int // questions without evidence: not scored, but for those that nothing answers
	Malformed           int // entries of evidence that are not exactly one id
	Missing             int // ids of evidence that no memory has
	Unread              int // memories that could not be read
	Cut                 int // memories and questions longer than they may be, cut
}

// FindData returns the folder with the sets: dir if it is not empty, else
// $MNEME_DATA as given by env, else shared/data beside the repository that the
// working directory lies in. Without any it returns ErrNoData, saying where it
// looked.
func FindData(dir, env, workDir string) (string, error) {
	for _, d := range []string{dir, env} {
		if d != "" {
			if info, err := os.Stat(d); err != nil || !info.IsDir() {
				return "", fmt.Errorf("%w: %s is not a folder", ErrNoData, d)
			}
			return d, nil
		}
	}
	root, err := repository(workDir)
	if err != nil {
		return "", err
	}
	d := filepath.Join(filepath.Dir(root), "shared", "data")
	if info, err := os.Stat(d); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w: neither $MNEME_DATA nor %s is there", ErrNoData, d)
	}
	return d, nil
}

// repository walks up from dir to the folder that holds go.mod.
func repository(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("%w: $MNEME_DATA is not set and no repository is around here", ErrNoData)
		}
		dir = up
	}
}

// Load reads a set from the data folder, or makes it; dir may be empty for those
// that are made. A set whose data is not there is ErrNoData.
func Load(ctx context.Context, name, dir string) (*Set, error) {
	i := slices.Index(Names(), name)
	if i < 0 {
		return nil, fmt.Errorf("set %q is unknown; sets are %v", name, Names())
	}
	set, err := loaders[i].load(ctx, dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrNoData, err)
		}
		return nil, fmt.Errorf("load %s: %w", name, err)
	}
	set.Name = name
	for _, ns := range set.Namespaces {
		set.Counts.Captures += len(ns.Captures)
		group(&ns)
	}
	return set, nil
}

// group gives questions without a group that of the conversation that holds the
// first of their evidence, and one of their own if there is none.
func group(ns *Namespace) {
	conversations := map[string]string{}
	for _, c := range ns.Captures {
		conversations[c.ID] = c.Conversation
	}
	for i := range ns.Questions {
		q := &ns.Questions[i]
		if q.Group != "" {
			continue
		}
		q.Group = ns.Name + " question " + strconv.Itoa(i)
		switch {
		case len(q.Evidence) > 0 && conversations[q.Evidence[0]] != "":
			q.Group = ns.Name + " " + conversations[q.Evidence[0]]
		case len(q.Sessions) > 0:
			q.Group = ns.Name + " " + q.Sessions[0]
		}
	}
}

// files lists the JSON files of a folder by name; none is ErrNotExist.
func files(dir string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s holds no .json: %w", dir, os.ErrNotExist)
	}
	slices.Sort(found)
	return found, nil
}

// addQuestion counts a question and adds it to the namespace.
func (s *Set) addQuestion(ns *Namespace, q Question) {
	s.Counts.Questions++
	if len(q.Evidence) == 0 && len(q.Sessions) == 0 {
		s.Counts.NoEvidence++
	}
	ns.Questions = append(ns.Questions, q)
}

// addUnit adds a unit of evidence unless it is there, and counts it if no
// capture has it.
func (s *Set) addUnit(q *Question, unit string, known map[string]bool) {
	if slices.Contains(q.Evidence, unit) {
		return
	}
	if !known[unit] {
		s.Counts.Missing++
	}
	q.Evidence = append(q.Evidence, unit)
}

// fit cuts a text that is longer than a capture may be.
func (s *Set) fit(text string) string { return s.cut(text, memory.MaxTextBytes) }

// cut cuts a text to so many bytes, between runes, and counts it.
func (s *Set) cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	s.Counts.Cut++
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// readJSON reads one file into v.
func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
