package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Append implements Stream. It waits at most the ack timeout.
func (j *JetStream) Append(ctx context.Context, data []byte, last uint64) error {
	if j.closed.Load() {
		return fmt.Errorf("publish: %w", ErrClosed)
	}
	select {
	case j.sending <- struct{}{}:
		defer func() { <-j.sending }()
	case <-ctx.Done():
		return fmt.Errorf("publish: %w: %w", ErrRefused, ctx.Err())
	}
	if j.cfg.Fault != nil {
		// The server does not answer a publish that it could not store, and does
		// not store again before it is restarted: spare the caller the wait.
		if fault := j.cfg.Fault(); errors.Is(fault, ErrNoSpace) {
			return fmt.Errorf("publish: %w: %w", ErrStopped, fault)
		}
	}
	if err := j.guard(nil); err != nil {
		return fmt.Errorf("publish: %w: %w", ErrRefused, err)
	}
	ctx, cancel := context.WithTimeout(ctx, j.cfg.AckTimeout)
	defer cancel()
	if err := j.still(ctx); err != nil {
		return fmt.Errorf("publish: %w: %w", ErrRefused, err)
	}
	msg := &nats.Msg{
		Subject: j.subject,
		Data:    data,
		Header:  nats.Header{nats.ExpectedLastSeqHdr: {strconv.FormatUint(last, 10)}},
	}
	reply, err := j.nc.RequestMsgWithContext(ctx, msg)
	if err != nil {
		return fmt.Errorf("publish: %w", j.publishError(err))
	}
	if err := parseAck(reply.Data, last); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := j.guard(nil); err != nil { // another server may have answered
		return fmt.Errorf("publish: %w: %w", ErrUnknown, err)
	}
	j.known = time.Now()
	return nil
}

// still asks external servers, where nothing was appended for a while, whether the stream is this cluster's:
// one that another cluster made in its place takes what is appended, if it has as many messages.
func (j *JetStream) still(ctx context.Context) error {
	if j.cfg.Guard == nil || time.Since(j.known) < knownFor {
		return nil
	}
	st, err := j.ask(ctx)
	if err == nil && j.others(&st.CachedInfo().Config) {
		err = ErrOtherCluster
	}
	return err
}

// publishError sorts what the client library says by what it means for the
// message. Buffering while disconnected is off (see Remote), so an error about
// the buffer means that nothing was sent.
func (j *JetStream) publishError(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrMaxPayload),
		errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrBadSubject):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case errors.Is(err, nats.ErrConnectionClosed) && j.nc.IsClosed():
		// It may have been closed while the message was under way.
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if j.cfg.Fault != nil {
		if fault := j.cfg.Fault(); fault != nil {
			return fmt.Errorf("%w: %w: %w", ErrUnknown, err, fault)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// Error codes of the server that mean more than "something failed".
const (
	codeWrongLastSequence  = 10071
	codeStoreFailed        = 10077
	codeMessageTooLarge    = 10054
	codeAccountExceeded    = 10002
	codeInsufficient       = 10023
	codeStorageExceeded    = 10047
	codeNotEnabledAccount  = 10039
	codeNotEnabled         = 10076
	storeFailedMaxBytes    = "maximum bytes exceeded"
	storeFailedMaxMessages = "maximum messages exceeded"
	storeFailedTooLarge    = "message size exceeds maximum allowed"
)

type pubAck struct {
	Error *struct {
		Code        int    `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
	Seq       uint64 `json:"seq"`
	Duplicate bool   `json:"duplicate"`
}

// parseAck returns nil for an ack of sequence last+1 and else what the answer
// means for the message.
func parseAck(b []byte, last uint64) error {
	var a pubAck
	if err := json.Unmarshal(b, &a); err != nil {
		return fmt.Errorf("%w: unreadable ack: %v", ErrUnknown, err)
	}
	switch {
	case a.Error != nil:
		return fmt.Errorf("%w: %.200s (%d)", ackMeaning(a.Error.Code, a.Error.Description), a.Error.Description, a.Error.Code)
	case a.Duplicate:
		return fmt.Errorf("%w: acknowledged as a duplicate at sequence %d", ErrUnknown, a.Seq)
	case a.Seq == 0 || a.Seq-1 != last:
		return fmt.Errorf("%w: acknowledged at sequence %d instead of %d", ErrUnknown, a.Seq, last+1)
	}
	return nil
}

func ackMeaning(code int, description string) error {
	switch code {
	case codeWrongLastSequence, codeMessageTooLarge, codeNotEnabled, codeNotEnabledAccount:
		return ErrRefused
	case codeAccountExceeded, codeInsufficient, codeStorageExceeded:
		return ErrNoSpace
	case codeStoreFailed:
		switch {
		case strings.Contains(description, storeFailedMaxBytes), strings.Contains(description, storeFailedMaxMessages):
			return ErrNoSpace
		case strings.Contains(description, storeFailedTooLarge):
			return ErrRefused
		}
	}
	return ErrUnknown
}
