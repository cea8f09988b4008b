package eventlog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Batches of direct gets: enough to hide the round trip, little enough to stay
// far below the limit of what the server buffers for one client (64 MiB).
const (
	readBatch      = 1024
	readBatchBytes = 4 << 20
	// A leader may not have applied all that it has, or be none any more: it is asked
	// again for as long as that may pass before a message counts as missing.
	readRetryPause = 25 * time.Millisecond
	readTimeout    = 10 * time.Second
	readProbes     = 256 // unreadable messages in a row that reading gets past
	readAhead      = 32  // messages that the leader of a stream is asked for at a time
)

// Info implements Stream.
func (j *JetStream) Info(ctx context.Context) (Info, error) {
	if j.closed.Load() {
		return Info{}, fmt.Errorf("info: %w", ErrClosed)
	}
	st, err := j.ask(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if j.cfg.Guard != nil { // it may be another server, which never had it
			if err := j.cfg.Guard(j.name, []Copy{}); err != nil {
				return Info{}, fmt.Errorf("info %s: %w", j.name, err)
			}
		}
		// Its identity says that it is not there; so may one of whom the servers' leader has
		// not heard yet, or no more.
		return Info{First: 1, Passing: j.passing()}, nil
	}
	if err != nil && j.cfg.Replicas > 1 && ctx.Err() == nil && retryable(err) {
		return Info{}, fmt.Errorf("info %s: %w: %w", j.name, ErrNoLeader, err)
	}
	if err != nil {
		return Info{}, fmt.Errorf("info %s: %w", j.name, err)
	}
	in := st.CachedInfo()
	if err := j.guard(in); err != nil {
		// A frame of unknown outcome that is found now may not be on disk.
		return Info{}, fmt.Errorf("info %s: %w", j.name, err)
	}
	s := in.State
	leader := ""
	if in.Cluster != nil {
		leader = in.Cluster.Leader
	}
	if j.cfg.Replicas > 1 && leader == "" {
		// Any replica answers while there is none, also one that is behind.
		return Info{}, fmt.Errorf("info %s: %w", j.name, ErrNoLeader)
	}
	if j.others(&in.Config) {
		return Info{First: 1, Identity: identityOf(&in.Config), Leader: leader, Passing: j.passing()}, nil
	}
	info := Info{
		First: s.FirstSeq, Last: s.LastSeq, Messages: s.Msgs, Bytes: s.Bytes,
		Identity: identityOf(&in.Config), Leader: leader, Passing: j.passing(),
		Copies: max(in.Config.Replicas, 1), Whole: 1,
	}
	if info.Copies > 1 {
		info.Whole = wholeOf(copiesOf(in.Cluster))
	}
	if s.Msgs == 0 {
		info.First = s.LastSeq + 1
	}
	if s.Lost != nil {
		info.Lost, info.LostSize = s.Lost.Msgs, s.Lost.Bytes
	}
	return info, nil
}

func identityOf(c *jetstream.StreamConfig) string { return cmp.Or(c.Metadata[metaIdentity], c.Name) }

// passing is Info.Passing: a leader that nobody follows any more gives up after
// quorumLostAfter, and looks as often. External servers have nats-server's own times, of
// ten seconds.
func (j *JetStream) passing() time.Duration {
	switch {
	case j.cfg.Replicas == 1:
		return 0
	case j.cfg.Guard != nil:
		return 25 * time.Second
	}
	return 3 * quorumLostAfter
}

// Get implements Stream.
func (j *JetStream) Get(ctx context.Context, seq uint64) (Message, error) {
	var found Message
	if seq == 0 {
		return found, fmt.Errorf("get 0: %w", ErrNotFound)
	}
	err := j.Read(ctx, seq, seq, func(m Message) error { found = m; return nil })
	var gap *GapError
	if errors.As(err, &gap) {
		return Message{}, fmt.Errorf("get %d: %w", seq, ErrNotFound)
	}
	return found, err
}

// Read implements Stream through batched direct gets, which leave nothing
// behind on the server.
func (j *JetStream) Read(ctx context.Context, from, to uint64, fn func(Message) error) error {
	if j.closed.Load() {
		return fmt.Errorf("read: %w", ErrClosed)
	}
	if from == 0 || to == 0 {
		info, err := j.Info(ctx)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if from == 0 {
			from = info.First
		}
		if to == 0 {
			to = info.Last
		}
	}
	if from > to {
		return nil
	}
	r, err := j.newReader(from, to)
	if err != nil {
		return fmt.Errorf("read %s: %w", j.name, err)
	}
	defer r.close()
	return r.run(ctx, fn)
}

type reader struct {
	j        *JetStream
	sub      *nats.Subscription
	inbox    string
	next, to uint64
	got      []Message
	passing  time.Duration // Info.Passing
}

func (j *JetStream) newReader(from, to uint64) (*reader, error) {
	inbox := j.nc.NewInbox()
	sub, err := j.nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return nil, err
	}
	return &reader{j: j, sub: sub, inbox: inbox, next: from, to: to, passing: j.passing()}, nil
}

// close fails only if the connection is gone, and the subscription with it.
func (r *reader) close() { _ = r.sub.Unsubscribe() }

func (r *reader) run(ctx context.Context, fn func(Message) error) error {
	led := time.Now()         // when a leader answered last
	var nothing contradiction // that the next message is not there
	for r.next <= r.to {
		batch, err := r.batch(ctx, r.next, min(r.to-r.next+1, readBatch))
		var held bool
		if err == nil && len(batch) == 0 {
			held, err = r.holds(ctx, &nothing)
		}
		if errors.Is(err, ErrNoLeader) && ctx.Err() == nil && time.Since(led) < readTimeout {
			nothing = contradiction{}
			if err := pause(ctx, readRetryPause); err != nil {
				return fmt.Errorf("read %s at %d: %w", r.j.name, r.next, err)
			}
			continue // another server leads soon
		}
		if errors.Is(err, errBadAnswer) && len(batch) == 0 {
			return r.unreadable(ctx, err)
		}
		if err != nil && !errors.Is(err, errBadAnswer) {
			return fmt.Errorf("read %s at %d: %w", r.j.name, r.next, err)
		}
		for _, m := range batch {
			if m.Seq != r.next {
				return &GapError{Want: r.next, Got: m.Seq}
			}
			r.next++
			if err := fn(m); err != nil {
				return err
			}
		}
		led = time.Now()
		if len(batch) > 0 {
			nothing = contradiction{}
			continue
		}
		if held {
			return r.skip(ctx)
		}
		if err := pause(ctx, readRetryPause); err != nil {
			return fmt.Errorf("read %s at %d: %w", r.j.name, r.next, err)
		}
	}
	return nil
}

// holds reports whether it is so that the log does not have the next message, of which its
// leader has just said so once more: what it tells may pass (Info.Passing).
func (r *reader) holds(ctx context.Context, nothing *contradiction) (bool, error) {
	if r.passing == 0 {
		return true, nil
	}
	info, err := r.j.Info(ctx)
	return err == nil && nothing.by(info.Leader, time.Now()) >= r.passing, err
}

// unreadable reports a message that the server handed out in a form that is
// none. Its record was damaged where no checksum of the server looks.
func (r *reader) unreadable(ctx context.Context, cause error) error {
	err := r.skip(ctx)
	var gap *GapError
	if errors.As(err, &gap) {
		gap.Detail = cause.Error()
	}
	return err
}

// skip finds what comes after a sequence at which the server gives nothing:
// either the log ends, or the server cannot read the message there and says the
// same. It returns a *GapError, or why it could not find out.
func (r *reader) skip(ctx context.Context) error {
	info, err := r.j.Info(ctx)
	if err != nil {
		return fmt.Errorf("read %s at %d: %w", r.j.name, r.next, err)
	}
	for seq := r.next + 1; seq <= info.Last && seq <= r.next+readProbes; seq++ {
		got, err := r.batch(ctx, seq, 1)
		if err != nil && !errors.Is(err, errBadAnswer) {
			return fmt.Errorf("read %s at %d: %w", r.j.name, seq, err)
		}
		if len(got) > 0 {
			return &GapError{Want: r.next, Got: got[0].Seq}
		}
	}
	return &GapError{Want: r.next}
}

// batch asks once and collects what comes until the end of the batch, so that a
// slow callee does not count as a slow server. With an unreadable answer it
// returns what came before it, and an error that wraps errBadAnswer.
func (r *reader) batch(ctx context.Context, from, n uint64) ([]Message, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if r.j.cfg.Replicas > 1 {
		return r.fromLeader(ctx, from, min(n, readAhead))
	}
	req := fmt.Appendf(nil, `{"seq":%d,"batch":%d,"max_bytes":%d}`, from, n, readBatchBytes)
	if err := r.j.nc.PublishRequest("$JS.API.DIRECT.GET."+r.j.name, r.inbox+".batch", req); err != nil {
		return nil, err
	}
	got := r.got[:0]
	defer func() { r.got = got }()
	var bad error // the first; what follows it is read and dropped
	for {
		msg, err := r.sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		m, end, err := parseDirect(msg)
		switch {
		case errors.Is(err, errRefusedRead):
			return nil, err
		case end:
			return got, bad
		case bad == nil && err != nil:
			bad = err
		case bad == nil:
			got = append(got, m)
		}
	}
}

// fromLeader asks the leader of the stream: any other replica may be behind, and says
// nothing about it. It has no batches; a few requests are under way at a time, whose
// answers come in any order.
func (r *reader) fromLeader(ctx context.Context, from, n uint64) ([]Message, error) {
	for seq := from; seq < from+n; seq++ {
		m := &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + r.j.name, Reply: r.inbox + "." + strconv.FormatUint(seq, 10), Data: fmt.Appendf(nil, `{"seq":%d}`, seq)}
		if err := r.j.nc.PublishMsg(m); err != nil {
			return nil, err
		}
	}
	answers := make([]*nats.Msg, n)
	short, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for left := n; left > 0; {
		msg, err := r.sub.NextMsgWithContext(short)
		if err != nil && short.Err() != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%w: it does not answer", ErrNoLeader)
		}
		if err != nil {
			return nil, err
		}
		token := msg.Subject[len(r.inbox)+1:]
		seq, err := strconv.ParseUint(token, 10, 64)
		if err != nil || seq-from >= n || answers[seq-from] != nil {
			continue // of a question before
		}
		answers[seq-from] = msg
		left--
	}
	got := r.got[:0]
	defer func() { r.got = got }()
	for i, msg := range answers {
		m, there, err := parseStored(msg)
		switch {
		case errors.Is(err, errBadAnswer):
			return got, err
		case err != nil:
			return nil, err
		case !there:
			return got, nil
		case m.Seq != from+uint64(i):
			return nil, fmt.Errorf("%w: sequence %d instead of %d", errRefusedRead, m.Seq, from+uint64(i))
		}
		got = append(got, m)
	}
	return got, nil
}

const (
	codeNoMessage = 10037 // the sequence holds nothing
	codeNoPeers   = 10005 // fewer servers than replicas
	codeNotNow    = 10008 // nobody leads, or who leads is not ready
)

// parseStored reads an answer to STREAM.MSG.GET; there is false if the sequence holds
// nothing.
func parseStored(msg *nats.Msg) (m Message, there bool, err error) {
	var a struct {
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
		Message *struct {
			Seq  uint64    `json:"seq"`
			Data []byte    `json:"data"`
			Time time.Time `json:"time"`
		} `json:"message"`
	}
	if status := header(msg, "Status"); status != "" {
		return m, false, fmt.Errorf("%w: status %.10q %.100q", errRefusedRead, status, header(msg, "Description"))
	}
	switch err := json.Unmarshal(msg.Data, &a); {
	case err != nil:
		return m, false, fmt.Errorf("%w: %w", errBadAnswer, err)
	case a.Error != nil && a.Error.Code == codeNoMessage:
		return m, false, nil
	case a.Error != nil && a.Error.Code == codeNotNow:
		return m, false, fmt.Errorf("%w: %.200s", ErrNoLeader, a.Error.Description)
	case a.Error != nil:
		return m, false, fmt.Errorf("%w: %.200s (%d)", errRefusedRead, a.Error.Description, a.Error.Code)
	case a.Message == nil || a.Message.Seq == 0:
		return m, false, fmt.Errorf("%w: no message in it", errBadAnswer)
	}
	return Message{Seq: a.Message.Seq, Data: a.Message.Data, Time: a.Message.Time}, true, nil
}

var (
	errBadAnswer   = errors.New("unexpected answer of the server")
	errRefusedRead = errors.New("the server refused to read")
)

// parseDirect reads one answer to a direct get. end is true for "no message"
// and for the end of a batch.
func parseDirect(msg *nats.Msg) (m Message, end bool, err error) {
	switch status := header(msg, "Status"); status {
	case "":
	case "204", "404":
		return m, true, nil
	default:
		return m, false, fmt.Errorf("%w: status %.10q %.100q", errRefusedRead, status, header(msg, "Description"))
	}
	seq, err := strconv.ParseUint(header(msg, jetstream.SequenceHeader), 10, 64)
	if err != nil || seq == 0 {
		return m, false, fmt.Errorf("%w: sequence %.30q", errBadAnswer, header(msg, jetstream.SequenceHeader))
	}
	at, err := time.Parse(time.RFC3339Nano, header(msg, jetstream.TimeStampHeaer))
	if err != nil {
		return m, false, fmt.Errorf("%w: time %.40q", errBadAnswer, header(msg, jetstream.TimeStampHeaer))
	}
	return Message{Seq: seq, Data: msg.Data, Time: at}, false, nil
}

func header(msg *nats.Msg, key string) string {
	if v := msg.Header[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}
