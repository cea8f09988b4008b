package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Stdio is the transport of standard input and output, one message a line. Unlike the SDK's, it
// answers a line that is no message with an error and goes on with the next.
type Stdio struct {
	In  io.Reader // not closed
	Out io.Writer // not closed
}

// Connect begins to read.
func (t *Stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &stdio{out: t.Out, incoming: make(chan jsonrpc.Message), ended: make(chan struct{}), closed: make(chan struct{})}
	go c.read(t.In)
	return c, nil
}

// stdio is the connection. Its reader ends with the input: nothing else unblocks a read of it.
type stdio struct {
	incoming chan jsonrpc.Message
	ended    chan struct{} // closed when the input is at its end
	failed   error         // why, once it is
	closed   chan struct{}
	closing  sync.Once

	mu  sync.Mutex // held while a line is written
	out io.Writer
}

func (c *stdio) read(in io.Reader) {
	defer close(c.ended)
	r := bufio.NewReaderSize(in, 64<<10)
	for first := true; ; first = false {
		line, err := readLine(r)
		if first {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // the mark with which some shells begin
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			m, refused := parse(line)
			if refused != nil {
				err = cmp.Or(c.write(refused), err)
			} else {
				select {
				case c.incoming <- m:
				case <-c.closed:
					return
				}
			}
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

// Read waits for a message.
func (c *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.incoming:
		return m, nil
	case <-c.ended:
		return nil, c.failed
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, io.EOF
	}
}

// Write writes a message. It is safe for concurrent use.
func (c *stdio) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Response); ok {
		m = coded(r)
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.write(b)
}

// coded gives an error a code that the SDK has none for: a request that comes before its time, or
// a second time.
func coded(r *jsonrpc.Response) *jsonrpc.Response {
	if e := (*jsonrpc.Error)(nil); r.Error == nil || errors.As(r.Error, &e) {
		return r
	}
	return &jsonrpc.Response{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: r.Error.Error()}}
}

func (c *stdio) write(message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(message, '\n'))
	return err
}

// Close ends Read. It may be called again.
func (c *stdio) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return nil
}

// SessionID is none: there is one session.
func (c *stdio) SessionID() string { return "" }
