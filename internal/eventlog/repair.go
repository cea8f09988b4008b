package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/events"
)

// A repair never touches a stream that is there. It copies what the log held from
// the state into a stream of another name, at the same sequences, and that one
// takes the old one's place. So a repair that is killed has lost nothing, and
// somebody who still writes to the old stream writes nothing that counts.

// Source is what the state kept of the log: the bytes of each message up to Last.
type Source struct {
	Frame func(seq uint64) ([]byte, error)
	Last  uint64
	// Progress, if not nil, is called after each message that was compared or
	// written.
	Progress func(done, total uint64)
}

func (s *Source) progress(seq uint64) {
	if s.Progress != nil {
		s.Progress(seq, s.Last)
	}
}

// RepairError says why a repair cannot go on.
type RepairError struct {
	Seq    uint64
	Detail string
}

func (e *RepairError) Error() string {
	return fmt.Sprintf("repair refused at sequence %d: %s", e.Seq, e.Detail)
}

// Span is a run of sequences.
type Span struct{ From, To uint64 }

// Compare holds a stream against the source, as far as the source goes, and
// returns what of it the stream does not have. What is missing is no
// contradiction, nor is a message that is no frame: its bytes were damaged, for a
// frame has a checksum. Any other message that is not the source's is a
// *RepairError: the source is not what this stream led to.
func Compare(ctx context.Context, s Stream, src Source) (missing []Span, err error) {
	info, err := s.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	next := uint64(1) // the first that was not compared
	lacks := func(until uint64) {
		if until > next {
			missing = append(missing, Span{next, until - 1})
		}
	}
	end := min(info.Last, src.Last)
	for at := uint64(1); at <= end; {
		err := s.Read(ctx, at, end, func(m Message) error {
			same, err := src.has(m)
			switch {
			case err != nil:
				return err
			case same:
				lacks(m.Seq)
				next = m.Seq + 1
			case !rotten(m.Data):
				return &RepairError{m.Seq, "the message that is there differs from the one that the state applied"}
			}
			at = m.Seq + 1
			src.progress(m.Seq)
			return nil
		})
		var gap *GapError
		switch {
		case errors.As(err, &gap):
			if at = gap.Got; at == 0 {
				at = end + 1
			}
		case err != nil:
			return nil, fmt.Errorf("compare: %w", err)
		}
	}
	lacks(src.Last + 1)
	return missing, nil
}

func (s *Source) has(m Message) (bool, error) {
	want, err := s.Frame(m.Seq)
	if err != nil {
		return false, fmt.Errorf("source at %d: %w", m.Seq, err)
	}
	return bytes.Equal(m.Data, want), nil
}

// rotten reports whether bytes of the log are no frame.
func rotten(data []byte) bool {
	_, err := events.DecodeFrame(data)
	return errors.Is(err, events.ErrMalformed)
}

// Fill writes the source into a stream, from the first message on. It may be
// repeated after it was interrupted. What the stream has already must be the
// source's, without a hole, else it is a *RepairError and the stream is of no use.
// Two may fill the same stream at a time, for they write the same.
func Fill(ctx context.Context, s Stream, src Source) error {
	info, err := s.Info(ctx)
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	if end := min(info.Last, src.Last); end > 0 {
		err := s.Read(ctx, 1, end, func(m Message) error {
			same, err := src.has(m)
			if err == nil && !same {
				err = &RepairError{m.Seq, "the message that is there is not what was to be written"}
			}
			src.progress(m.Seq)
			return err
		})
		var gap *GapError
		if errors.As(err, &gap) {
			err = &RepairError{gap.Want, gap.Error()}
		}
		if err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	for seq := info.Last + 1; seq <= src.Last; seq++ {
		if err := src.write(ctx, s, seq); err != nil {
			return fmt.Errorf("fill %d: %w", seq, err)
		}
		src.progress(seq)
	}
	return nil
}

// electing bounds how long a message is sent again because nobody answers: the servers of
// a stream with copies elect, and one that was just made has no leader at first.
const electing = 10 * time.Second

// write appends one message; an unknown outcome is settled by looking.
func (s *Source) write(ctx context.Context, to Stream, seq uint64) error {
	data, err := s.Frame(seq)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		if err = to.Append(ctx, data, seq-1); err == nil {
			return nil
		}
		m, gerr := to.Get(ctx, seq)
		switch {
		case gerr == nil && bytes.Equal(m.Data, data):
			return nil
		case gerr == nil:
			return &RepairError{seq, "somebody else wrote to the log meanwhile"}
		case !retryable(err) || errors.Is(err, ErrNoSpace) || errors.Is(err, ErrStopped) || time.Since(began) > electing:
			return err
		}
		if pause(ctx, apiRetryPause) != nil {
			return err
		}
	}
}
