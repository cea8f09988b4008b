package eventlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"mneme/internal/events"
)

// Problem is one thing wrong with the log. Kind is one of the Kind constants,
// or "void" or "undecodable", which are legal in a log but worth a look.
type Problem struct {
	Seq    uint64
	Kind   string
	Detail string
}

// Kinds of problems that are not divergence.
const (
	KindVoid        = "void"        // the frame does not continue the chain and has no effect
	KindUndecodable = "undecodable" // the bytes are no frame, or hold no envelope
)

const maxProblems = 1000

// Tail is where a log stands: its last sequence, the chain after it, and the term
// and epoch that hold there.
type Tail struct {
	Seq   uint64
	Chain events.Chain
	Term  uint64
	Epoch uint32
	Shard uint16
}

// ScrubReport is what a scrub found.
type ScrubReport struct {
	From, To    uint64 // the sequences that were to be read
	Frames      uint64 // messages read
	Events      uint64 // envelopes in frames that count
	Void        uint64
	Undecodable uint64 // messages that are no frame, and envelopes that do not decode
	Missing     uint64 // sequences that are not there
	Bytes       uint64
	Tail        Tail // where the log stands after To
	// ChainKnown is false after a gap: from there on the chain is taken from the
	// frames themselves, and Tail.Chain proves nothing about what lies before.
	ChainKnown   bool
	Problems     []Problem // the first 1000
	ProblemCount uint64
}

// Diverged returns the first problem that means divergence, or nil.
func (r *ScrubReport) Diverged() *DivergedError {
	for _, p := range r.Problems {
		if p.Kind != KindVoid && p.Kind != KindUndecodable {
			detail := p.Detail
			if p.Seq > 0 {
				detail = fmt.Sprintf("sequence %d: %s", p.Seq, p.Detail)
			}
			return diverged(p.Kind, p.Seq, "%s", detail)
		}
	}
	return nil
}

// Scrub reads everything behind from against the chain: it recomputes it,
// decodes every frame and envelope, and compares each message with the hash
// that the state has for it (SHA-256 of the frame; hashes may be nil). Problems
// are reported, not returned; an error means that the log could not be read.
// progress, if not nil, is called now and then with messages done and in total.
func Scrub(ctx context.Context, s Stream, from Tail, hashes func(seq uint64) (events.Hash, bool), progress func(done, total uint64)) (ScrubReport, error) {
	sc, err := BeginScrub(ctx, s, from)
	if err != nil {
		return ScrubReport{}, err
	}
	sc.progress = progress
	for more := true; more && err == nil; {
		more, err = sc.Step(ctx, s, hashes, math.MaxUint64)
	}
	return sc.r, err
}

// Scrubber is a scrub in steps, for one that shall be slow. It is not safe for
// concurrent use.
type Scrubber struct {
	r        ScrubReport
	hashes   func(uint64) (events.Hash, bool)
	progress func(done, total uint64)
	resync   bool // take the chain from the next frame
	ended    bool
}

// BeginScrub begins a scrub of what the log holds behind from at this moment.
func BeginScrub(ctx context.Context, s Stream, from Tail) (*Scrubber, error) {
	info, err := s.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("scrub: %w", err)
	}
	sc := &Scrubber{r: ScrubReport{From: from.Seq + 1, To: info.Last, Tail: from, ChainKnown: true}}
	for _, seq := range info.Lost {
		sc.problem(seq, KindLost, "the server reports it lost")
	}
	if info.LostSize > 0 && len(info.Lost) == 0 {
		sc.problem(0, KindLost, fmt.Sprintf("the server reports %d lost bytes", info.LostSize))
	}
	if info.Last < from.Seq {
		sc.problem(info.Last+1, KindSuffixLost, fmt.Sprintf("the log ends at %d, before %d", info.Last, from.Seq))
		sc.ended = true
	}
	return sc, nil
}

// Report is what was found so far.
func (s *Scrubber) Report() ScrubReport { return s.r }

// Step reads at most n messages more and reports whether any are left.
func (s *Scrubber) Step(ctx context.Context, stream Stream, hashes func(seq uint64) (events.Hash, bool), n uint64) (more bool, err error) {
	if s.ended || s.r.Tail.Seq >= s.r.To {
		return false, nil
	}
	s.hashes = hashes
	to := s.r.To
	if left := to - s.r.Tail.Seq; n < left {
		to = s.r.Tail.Seq + n
	}
	err = stream.Read(ctx, s.r.Tail.Seq+1, to, s.message)
	var gap *GapError
	switch {
	case errors.As(err, &gap):
		// A gap at the end of the step may go on behind it; the next step says.
		s.gap(gap, to)
	case err != nil:
		return false, fmt.Errorf("scrub: %w", err)
	}
	return s.r.Tail.Seq < s.r.To, nil
}

func (s *Scrubber) problem(seq uint64, kind, detail string) {
	s.r.ProblemCount++
	if len(s.r.Problems) < maxProblems {
		s.r.Problems = append(s.r.Problems, Problem{seq, kind, detail})
	}
}

func (s *Scrubber) gap(g *GapError, last uint64) {
	next := g.Got
	if next == 0 || next > last+1 {
		next = last + 1
	}
	detail := fmt.Sprintf("%d missing from here on", next-g.Want)
	if g.Detail != "" {
		detail = g.Error()
	}
	s.problem(g.Want, KindGap, detail)
	s.r.Missing += next - g.Want
	s.r.Tail.Seq = next - 1
	s.r.ChainKnown, s.resync = false, true
}

func (s *Scrubber) message(m Message) error {
	s.r.Frames++
	s.r.Bytes += uint64(len(m.Data))
	replaced := false
	if s.hashes != nil {
		if want, ok := s.hashes(m.Seq); ok && want != events.Hash(sha256.Sum256(m.Data)) {
			s.problem(m.Seq, KindHash, "not the message that the state applied")
			replaced = true
		}
	}
	f, err := events.DecodeFrame(m.Data)
	switch {
	case err != nil:
		s.r.Undecodable++
		s.problem(m.Seq, KindUndecodable, err.Error())
	default:
		s.frame(m.Seq, &f)
	}
	s.r.Tail.Chain = events.NextChain(s.r.Tail.Chain, m.Seq, m.Data)
	s.r.Tail.Seq = m.Seq
	if replaced {
		// One wrong message shall not make everything after it look void.
		s.r.ChainKnown, s.resync = false, true
	}
	if total := s.r.To - s.r.From + 1; s.progress != nil && (s.r.Frames%1024 == 0 || m.Seq == s.r.To) {
		s.progress(m.Seq-s.r.From+1, total)
	}
	return nil
}

func (s *Scrubber) frame(seq uint64, f *events.Frame) {
	if s.resync && f.Shard == s.r.Tail.Shard && f.Seq == seq {
		s.r.Tail.Chain, s.resync = f.Previous, false
	}
	if !f.Continues(s.r.Tail.Shard, seq, s.r.Tail.Chain, s.r.Tail.Term) {
		s.r.Void++
		s.problem(seq, KindVoid, fmt.Sprintf("shard %d term %d claims sequence %d; the log stands in term %d", f.Shard, f.Term, f.Seq, s.r.Tail.Term))
		return
	}
	s.r.Tail.Term = f.Term
	s.r.Tail.Epoch = max(s.r.Tail.Epoch, f.Epoch)
	s.r.Events += uint64(len(f.Events))
	for i, b := range f.Events {
		if _, err := events.DecodeEnvelope(b); err != nil {
			s.r.Undecodable++
			s.problem(seq, KindUndecodable, fmt.Sprintf("event %d: %v", i, err))
		}
	}
}
