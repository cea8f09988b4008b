package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/memory"
)

// Stdio is the transport of standard input and output, one message a line. Unlike the SDK's, it
// answers a line that is no message with an error and goes on with the next, answers what was
// asked before the input ended, and takes up no more calls while too much waits to be read.
type Stdio struct {
	In  io.Reader // not closed
	Out io.Writer // not closed
}

// Connect begins to read. With ctx the connection is closed.
func (t *Stdio) Connect(ctx context.Context) (mcp.Connection, error) {
	c := &stdio{inputEnded: make(chan struct{}), closed: make(chan struct{}), lines: make(chan outgoing), owing: newOwing()}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	go c.read(t.In)
	go c.writeLines(t.Out)
	return c, nil
}

// stdio is the connection. Its reader ends with the input, and its writer with the connection and
// the line that it writes: nothing else unblocks either.
type stdio struct {
	inputEnded chan struct{} // closed when the input is at its end, or is read no more
	failed     error         // why, once it is
	lines      chan outgoing
	closed     chan struct{}
	closing    sync.Once
	*owing
}

// outgoing is a line that is written.
type outgoing struct {
	bytes   []byte
	written chan error
}

func (c *stdio) read(in io.Reader) {
	defer close(c.inputEnded)
	r := bufio.NewReaderSize(in, 64<<10)
	for first := true; ; first = false {
		line, err := readLine(r)
		if first {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // the mark with which some shells begin
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			m, refused := parse(line)
			if refused == nil {
				refused = c.asked(m, len(line), c.closed)
			}
			if refused != nil && c.refuse(refused, c.closed) {
				go c.writeRefusals()
			}
		}
		select {
		case <-c.closed:
			err = cmp.Or(err, io.EOF) // without one the SDK would ask Read for ever
		default:
		}
		if err != nil {
			c.failed = err
			return
		}
	}
}

// readLine reads up to the end of a line. Of one that is too long it returns more than maxBody
// bytes, but not all.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line) <= maxBody {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// writeRefusals writes those that wait, one after the other. The reader goes on meanwhile: where nobody
// reads, it would not see the end of the input. What cannot be written fails with the next answer, too.
func (c *stdio) writeRefusals() {
	for r := c.refusal(); r != nil; r = c.refusal() {
		_ = c.write(context.Background(), r)
		c.settle(len(r))
	}
}

// errUnanswered is what reading ends with where calls take too long once the input has ended.
func errUnanswered(n int) error {
	return memory.Errorf(memory.CodeTimeout, "the input ended, and %v later calls had no answer yet (%d)", answerPatience, n)
}

// Read waits for a message.
func (c *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	ended := c.inputEnded
	for {
		select {
		case <-c.closed:
			return nil, io.EOF
		default:
		}
		m, over := c.next()
		if m != nil {
			return m, nil
		}
		if over {
			_ = c.Close() // so that a reader that has stopped does not hold up the end
			return nil, c.failed
		}
		select {
		case <-c.changed:
		case <-ended:
			ended = nil
			c.end()
		case <-c.patience.C:
			_ = c.Close()
			if n := c.unanswered(); n > 0 {
				return nil, errUnanswered(n)
			}
			return nil, errUnread
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		}
	}
}

// Write writes a message. It is safe for concurrent use. The answer to a call that was cancelled
// is not written: its client waits for it no more.
func (c *stdio) Write(ctx context.Context, m jsonrpc.Message) error {
	r, answer := m.(*jsonrpc.Response)
	if answer {
		m = coded(r)
	} else {
		c.questioned(m)
	}
	b, err := encode(m)
	if answer {
		held, waited := c.answering(r.ID, len(b))
		if !waited {
			return nil
		}
		defer c.settle(held)
	}
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	if req, ok := m.(*jsonrpc.Request); !ok || req.IsCall() {
		ctx = context.WithoutCancel(ctx)
	}
	return c.write(ctx, b)
}

// encode writes a message as a line. A result stands there as it is: the SDK wrote it without blanks between lines, and
// would read all of it once more to see that.
func encode(m jsonrpc.Message) ([]byte, error) {
	r, _ := m.(*jsonrpc.Response)
	if r == nil || r.Error != nil || !r.ID.IsValid() || len(r.Result) == 0 || bytes.ContainsAny(r.Result, "\r\n") {
		return jsonrpc.EncodeMessage(m)
	}
	id, err := json.Marshal(r.ID.Raw())
	if err != nil {
		return nil, err
	}
	const begin, between, end = `{"jsonrpc":"2.0","id":`, `,"result":`, `}`
	line := make([]byte, 0, len(begin)+len(id)+len(between)+len(r.Result)+len(end)+1) // room for the end of the line
	line = append(append(line, begin...), id...)
	line = append(append(line, between...), r.Result...)
	return append(line, end...), nil
}

// coded gives an error a code that the SDK has none for: a request that comes before its time, or
// a second time.
func coded(r *jsonrpc.Response) *jsonrpc.Response {
	if e := (*jsonrpc.Error)(nil); r.Error == nil || errors.As(r.Error, &e) {
		return r
	}
	return &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: r.Error.Error()}}
}

// errUnread is what writing ends with where nobody reads.
var errUnread = memory.Errorf(memory.CodeUnavailable, "the program that asks does not read the answers")

// write returns once the line is written, or the connection closed. Where ctx ends before, the line is written in its
// turn or not at all.
func (c *stdio) write(ctx context.Context, message []byte) error {
	l := outgoing{append(message, '\n'), make(chan error, 1)}
	select {
	case c.lines <- l:
	case <-c.closed:
		return errUnread
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-l.written:
		return err
	case <-c.closed:
		return errUnread
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *stdio) writeLines(out io.Writer) {
	for {
		select {
		case l := <-c.lines:
			_, err := out.Write(l.bytes)
			l.written <- err
		case <-c.closed:
			return
		}
	}
}

// Close ends Read and Write. It may be called again.
func (c *stdio) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return nil
}

// SessionID is none: there is one session.
func (c *stdio) SessionID() string { return "" }
