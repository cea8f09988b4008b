package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"mneme/memory"
)

// outcome is what a client knows of an operation.
type outcome int

const (
	done    outcome = iota // it was acknowledged
	refused                // it did not happen, and never will
	unknown                // it may have happened, or may still
)

// outcomeOf reads an error of a write. Whatever does not say that nothing happened leaves
// that open.
func outcomeOf(err error) outcome {
	switch memory.CodeOf(err) {
	case "":
		return done
	case memory.CodeUnavailable, memory.CodeOverloaded, memory.CodeConflict, memory.CodeNotFound, memory.CodeInvalid, memory.CodeNoSpace:
		return refused
	}
	return unknown
}

// captured is one capture of a history: all attempts under one id are one operation.
type captured struct {
	agent, id, text string
	n               int // of its agent, in order
	outcome         outcome
	result          memory.CaptureResult // if done
}

// The operations upon a register, which is a record: it is read, written by a revision,
// written by a revision upon a version, and forgotten upon one.
type registerKind int

const (
	registerRead registerKind = iota
	registerWrite
	registerSwap
	registerForget
)

type registerInput struct {
	kind  registerKind
	base  int    // the version that a swap or forget needs
	value string // what is written
}

// registerState is what a record holds. It is the answer of a read, too; a write answers
// the version.
type registerState struct {
	version int
	value   string
	gone    bool
}

type registerOutput struct {
	outcome  outcome
	conflict bool
	state    registerState
}

// registerModel is the record as a register. An operation with an unknown outcome ends
// after all others: there it may happen, or not.
var registerModel = porcupine.Model{
	Init: func() any { return registerState{} },
	Step: func(s, in, out any) (bool, any) {
		at, i, o := s.(registerState), in.(registerInput), out.(registerOutput)
		next := registerState{version: at.version + 1, value: i.value}
		var may bool
		switch i.kind {
		case registerRead:
			return o.state == at || o.state.gone && at.gone, at
		case registerWrite:
			may = !at.gone
		case registerSwap:
			may = !at.gone && at.version == i.base
		case registerForget:
			may, next = !at.gone && at.version == i.base, registerState{gone: true}
		}
		switch {
		case o.outcome == unknown && may:
			return true, next
		case o.outcome == unknown:
			return true, at
		case o.conflict:
			return !may, at
		}
		return may && (i.kind == registerForget || o.state.version == next.version), next
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
}

// register is the history of one record.
type register struct {
	id  string // of the record
	mu  sync.Mutex
	ops []porcupine.Operation
	// seen are the pairs of version and value that reads without a promise of freshness
	// gave.
	seen map[registerState]string
}

// note adds an operation. What was refused did not happen; what is unknown never ends.
func (r *register) note(client int, began, ended time.Duration, in registerInput, out registerOutput) {
	r.mu.Lock()
	defer r.mu.Unlock()
	op := porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(began), Return: int64(ended)}
	if out.outcome == unknown {
		op.Return = math.MaxInt64
	}
	r.ops = append(r.ops, op)
}

// history is what clients did in one namespace, and were told.
type history struct {
	mu        sync.Mutex
	captures  []captured
	registers []*register
	counts    map[string]int
	lastAck   time.Time
	gap       time.Duration // the longest time without an acknowledgement
}

func newHistory(registers []*register) *history {
	return &history{registers: registers, counts: map[string]int{}, lastAck: time.Now()}
}

// count adds to a number of operations by how they ended.
func (h *history) count(what string, o outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[what+" "+[]string{"done", "refused", "unknown"}[o]]++
	if o == done && what != "read" {
		now := time.Now()
		h.gap = max(h.gap, now.Sub(h.lastAck))
		h.lastAck = now
	}
}

func (h *history) capture(c captured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.captures = append(h.captures, c)
}

// checkRegisters asks porcupine whether each register's history could be that of one
// register, and looks for the pairs that other reads gave among its versions.
func (h *history) checkRegisters(limit time.Duration) (undecided int, err error) {
	for _, r := range h.registers {
		switch porcupine.CheckOperationsTimeout(registerModel, r.ops, limit) {
		case porcupine.Illegal:
			var lines []string
			for _, op := range r.ops {
				lines = append(lines, fmt.Sprintf("  client %d, %.3f to %.3f: %s", op.ClientId, seconds(op.Call), seconds(op.Return), registerModel.DescribeOperation(op.Input, op.Output)))
			}
			err = errors.Join(err, fmt.Errorf("record %s: its history is no register's:\n%s", r.id, strings.Join(lines, "\n")))
		case porcupine.Unknown:
			undecided++
		}
	}
	return undecided, err
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// The models find what they are for: a stale read, a lost update, a swap that won twice,
// an unknown write that is seen and then is not.
func TestHistoriesThatAreNoRegisters(t *testing.T) {
	at := func(version int, value string) registerOutput {
		return registerOutput{state: registerState{version: version, value: value}}
	}
	read, write, swap := registerInput{}, registerInput{kind: registerWrite, value: "w"}, registerInput{kind: registerSwap, base: 1, value: "s"}
	other := registerInput{kind: registerSwap, base: 1, value: "other"}
	type op struct {
		in  registerInput
		out registerOutput
	}
	open := registerOutput{outcome: unknown}
	for name, c := range map[string]struct {
		ops   []op
		legal bool
	}{
		"in order":                {[]op{{write, at(1, "")}, {read, at(1, "w")}, {swap, at(2, "")}, {read, at(2, "s")}}, true},
		"a stale read":            {[]op{{write, at(1, "")}, {swap, at(2, "")}, {read, at(1, "w")}}, false},
		"a lost update":           {[]op{{write, at(1, "")}, {write, at(1, "")}}, false},
		"a swap that won twice":   {[]op{{write, at(1, "")}, {swap, at(2, "")}, {other, at(2, "")}}, false},
		"a swap that lost":        {[]op{{write, at(1, "")}, {swap, at(2, "")}, {other, registerOutput{conflict: true}}}, true},
		"a swap that had to win":  {[]op{{write, at(1, "")}, {swap, registerOutput{conflict: true}}}, false},
		"unknown, and not seen":   {[]op{{write, at(1, "")}, {swap, open}, {read, at(1, "w")}}, true},
		"unknown, and seen":       {[]op{{write, at(1, "")}, {swap, open}, {read, at(2, "s")}}, true},
		"unknown, seen, and gone": {[]op{{write, at(1, "")}, {swap, open}, {read, at(2, "s")}, {read, at(1, "w")}}, false},
		"read after the end":      {[]op{{write, at(1, "")}, {registerInput{kind: registerForget, base: 1}, registerOutput{}}, {read, at(1, "w")}}, false},
	} {
		r := &register{}
		for i, o := range c.ops {
			r.note(i, time.Duration(2*i), time.Duration(2*i+1), o.in, o.out)
		}
		_, err := newHistory([]*register{r}).checkRegisters(time.Minute)
		if legal := err == nil; legal != c.legal {
			t.Errorf("%s: legal %v, want %v", name, legal, c.legal)
		}
	}
	if outcomeOf(context.DeadlineExceeded) != unknown {
		t.Error("an error that says nothing is no refusal")
	}
}
