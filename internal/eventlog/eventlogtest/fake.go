// Package eventlogtest holds what tests of the log need: an in-memory Stream
// that can be told to fail in every way a real one does, and the contract suite
// that every Stream has to pass.
package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"mneme/internal/eventlog"
)

// Fault is one way in which an append goes wrong.
type Fault string

// The faults of appends.
const (
	FaultNone          Fault = ""
	FaultRefuse        Fault = "refuse"         // refused, not stored
	FaultUnknownStored Fault = "unknown-stored" // stored, the ack is lost
	FaultUnknownLost   Fault = "unknown-lost"   // the message is lost
	FaultLate          Fault = "late"           // no ack; the message arrives at Deliver, or before a later append
	FaultWrongAck      Fault = "wrong-ack"      // stored, acknowledged at another sequence
	FaultTwice         Fault = "twice"          // stored two times, acknowledged
	FaultNoSpace       Fault = "no-space"       // the disk is full
	FaultFullStored    Fault = "full-stored"    // stored, no ack, and the server reports a full disk
	FaultFullLost      Fault = "full-lost"      // the message is lost, no ack, and the server reports a full disk
	FaultSecondWriter  Fault = "second-writer"  // somebody else's message gets in first
	FaultStopped       Fault = "stopped"        // the server stores nothing until it is restarted; not among Faults
	FaultBlind         Fault = "blind"          // stored, the ack is lost, and so is the next look at the log
)

// Faults lists those that a log gets over by itself.
var Faults = []Fault{
	FaultRefuse, FaultUnknownStored, FaultUnknownLost, FaultLate, FaultWrongAck,
	FaultTwice, FaultNoSpace, FaultFullStored, FaultFullLost, FaultSecondWriter, FaultBlind,
}

// ErrOffline is what reading fails with while the fake is offline.
var ErrOffline = errors.New("fake is offline")

type late struct {
	data []byte
	last uint64
}

// Fake is an in-memory Stream. It is safe for concurrent use.
type Fake struct {
	mu       sync.Mutex
	last     uint64
	msgs     map[uint64][]byte
	lost     []uint64
	lostSize uint64
	rotten   map[uint64]bool
	identity int
	closed   bool

	script  []Fault
	rng     *rand.Rand
	chance  float64
	offline int // looks that fail
	under   []late
	other   func(seq uint64) []byte
	bit     map[Fault]int
}

var _ eventlog.Stream = (*Fake)(nil)

// NewFake returns an empty stream that begins at 1.
func NewFake() *Fake {
	return &Fake{identity: 1, msgs: map[uint64][]byte{}, bit: map[Fault]int{}}
}

// Inject makes the next appends fail, one fault each.
func (f *Fake) Inject(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, faults...)
}

// Random makes each append fail with the given chance, in a random way, and
// delivers late messages now and then. Chance 0 ends it.
func (f *Fake) Random(rng *rand.Rand, chance float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rng, f.chance = rng, chance
}

// Offline makes the next n looks at the log (Info, Read, Get) fail.
func (f *Fake) Offline(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offline = n
}

// SecondWriter gives the bytes that FaultSecondWriter stores at a sequence.
func (f *Fake) SecondWriter(other func(seq uint64) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.other = other
}

// Bit counts how often each fault had its effect.
func (f *Fake) Bit() map[Fault]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.bit)
}

// Deliver lets the late messages arrive, and says how many were stored: those
// whose expectation holds now.
func (f *Fake) Deliver() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deliverLocked()
}

func (f *Fake) deliverLocked() int {
	stored := 0
	for _, l := range f.under {
		if l.last == f.last {
			f.storeLocked(l.data)
			stored++
		}
	}
	f.under = nil
	return stored
}

func (f *Fake) storeLocked(data []byte) {
	f.last++
	f.msgs[f.last] = slices.Clone(data)
}

// Put stores a message as another writer would, without expectation.
func (f *Fake) Put(data []byte) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.storeLocked(data)
	return f.last
}

// CutSuffix loses everything behind seq; new messages re-use its sequences.
func (f *Fake) CutSuffix(seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := seq + 1; s <= f.last; s++ {
		delete(f.msgs, s)
	}
	f.last = min(f.last, seq)
}

// Drop makes a hole.
func (f *Fake) Drop(seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.msgs, seq)
}

// Replace puts another message at a sequence.
func (f *Fake) Replace(seq uint64, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.msgs[seq] = slices.Clone(data)
}

// ReportLost lists sequences as lost, as a server does after it cut a block.
func (f *Fake) ReportLost(seqs ...uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = append(f.lost, seqs...)
}

// ReportLostBytes makes the server report lost bytes without saying of which
// messages, as it does when it cannot tell.
func (f *Fake) ReportLostBytes(n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lostSize += n
}

// Rot makes a message unreadable: it is there and counted, but reading it fails
// as a record whose checksum does not hold.
func (f *Fake) Rot(seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rotten == nil {
		f.rotten = map[uint64]bool{}
	}
	f.rotten[seq] = true
}

// Messages is everything in the log by sequence.
func (f *Fake) Messages() map[uint64][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.msgs)
}

// Recreate makes the stream anew, empty, as somebody does who deletes it and makes
// another one under its name.
func (f *Fake) Recreate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.msgs = 0, map[uint64][]byte{}
	f.lost, f.lostSize, f.rotten = nil, 0, nil
	f.identity++
}

// Close implements eventlog.Stream.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}

// Append implements eventlog.Stream, with faults.
func (f *Fake) Append(ctx context.Context, data []byte, last uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return eventlog.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrRefused, err)
	}
	if f.rng != nil && f.rng.IntN(4) == 0 {
		f.deliverLocked()
	}
	return f.appendLocked(data, last, f.nextFault())
}

func (f *Fake) nextFault() Fault {
	if len(f.script) > 0 {
		fault := f.script[0]
		f.script = f.script[1:]
		return fault
	}
	if f.rng != nil && f.rng.Float64() < f.chance {
		return Faults[f.rng.IntN(len(Faults))]
	}
	return FaultNone
}

func (f *Fake) appendLocked(data []byte, last uint64, fault Fault) error {
	switch fault {
	case FaultRefuse:
		f.bit[fault]++
		return fmt.Errorf("%w: injected", eventlog.ErrRefused)
	case FaultNoSpace:
		f.bit[fault]++
		return fmt.Errorf("%w: injected", eventlog.ErrNoSpace)
	case FaultStopped:
		f.bit[fault]++
		return fmt.Errorf("%w: %w: injected", eventlog.ErrStopped, eventlog.ErrNoSpace)
	case FaultFullLost:
		f.bit[fault]++
		return fmt.Errorf("%w: %w: injected", eventlog.ErrUnknown, eventlog.ErrNoSpace)
	case FaultUnknownLost:
		f.bit[fault]++
		return fmt.Errorf("%w: injected", eventlog.ErrUnknown)
	case FaultLate:
		f.bit[fault]++
		f.under = append(f.under, late{slices.Clone(data), last})
		return fmt.Errorf("%w: injected", eventlog.ErrUnknown)
	case FaultSecondWriter:
		if f.other != nil {
			f.bit[fault]++
			f.storeLocked(f.other(f.last + 1))
		}
	}
	if last != f.last {
		return fmt.Errorf("%w: wrong last sequence: %d", eventlog.ErrRefused, f.last)
	}
	f.storeLocked(data)
	switch fault {
	case FaultUnknownStored, FaultWrongAck:
		f.bit[fault]++
		return fmt.Errorf("%w: injected", eventlog.ErrUnknown)
	case FaultFullStored:
		f.bit[fault]++
		return fmt.Errorf("%w: %w: injected", eventlog.ErrUnknown, eventlog.ErrNoSpace)
	case FaultBlind:
		f.bit[fault]++
		f.offline++
		return fmt.Errorf("%w: injected", eventlog.ErrUnknown)
	case FaultTwice:
		f.bit[fault]++
		f.storeLocked(data)
	}
	return nil
}

func (f *Fake) lookLocked(ctx context.Context) error {
	switch {
	case f.closed:
		return eventlog.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case f.offline > 0:
		f.offline--
		return ErrOffline
	}
	return nil
}

// Info implements eventlog.Stream.
func (f *Fake) Info(ctx context.Context) (eventlog.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.lookLocked(ctx); err != nil {
		return eventlog.Info{}, err
	}
	return f.infoLocked(), nil
}

func (f *Fake) infoLocked() eventlog.Info {
	i := eventlog.Info{
		First: f.last + 1, Last: f.last, Messages: uint64(len(f.msgs)),
		Lost: slices.Clone(f.lost), LostSize: f.lostSize, Identity: fmt.Sprintf("fake-%d", f.identity),
	}
	for seq, data := range f.msgs {
		i.First = min(i.First, seq)
		i.Bytes += uint64(len(data))
	}
	return i
}

// Get implements eventlog.Stream.
func (f *Fake) Get(ctx context.Context, seq uint64) (eventlog.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.lookLocked(ctx); err != nil {
		return eventlog.Message{}, err
	}
	data, ok := f.msgs[seq]
	if !ok || f.rotten[seq] {
		return eventlog.Message{}, fmt.Errorf("get %d: %w", seq, eventlog.ErrNotFound)
	}
	return message(seq, data), nil
}

func message(seq uint64, data []byte) eventlog.Message {
	return eventlog.Message{Seq: seq, Data: slices.Clone(data), Time: time.Unix(int64(seq), 0).UTC()}
}

// Read implements eventlog.Stream.
func (f *Fake) Read(ctx context.Context, from, to uint64, fn func(eventlog.Message) error) error {
	f.mu.Lock()
	if err := f.lookLocked(ctx); err != nil {
		f.mu.Unlock()
		return err
	}
	if info := f.infoLocked(); true {
		if from == 0 {
			from = info.First
		}
		if to == 0 {
			to = info.Last
		}
	}
	f.mu.Unlock()
	for seq := from; seq <= to; seq++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := f.step(seq)
		if err != nil {
			return err
		}
		if err := fn(m); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fake) step(seq uint64) (eventlog.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return eventlog.Message{}, eventlog.ErrClosed
	}
	if data, ok := f.msgs[seq]; ok && !f.rotten[seq] {
		return message(seq, data), nil
	}
	gap := &eventlog.GapError{Want: seq}
	for s := range f.msgs {
		if s > seq && !f.rotten[s] && (gap.Got == 0 || s < gap.Got) {
			gap.Got = s
		}
	}
	return eventlog.Message{}, gap
}
