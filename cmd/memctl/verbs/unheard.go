package verbs

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// unheard is standard error of a program that has to go on, and to end, where nobody reads that: who hands a pipe
// to it, and reads answers alone, would have it wait for good once the pipe is full. What comes while a line
// waits to be read is left out. It is safe for concurrent use.
type unheard struct {
	to   io.Writer
	mu   sync.Mutex
	over chan struct{} // closed once the last line is written; nil = there was none
}

// heardWithin is how long a line waits to be read before others are left out.
const heardWithin = time.Second

// Write implements io.Writer.
func (u *unheard) Write(line []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over != nil {
		select {
		case <-u.over:
		default:
			return len(line), nil
		}
	}
	over, own := make(chan struct{}), bytes.Clone(line)
	u.over = over
	go func() {
		defer close(over)
		_, _ = u.to.Write(own) // there is nobody else to tell
	}()
	select {
	case <-over:
	case <-time.After(heardWithin):
	}
	return len(line), nil
}
