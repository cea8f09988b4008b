package eventlog

import (
	"context"
	"time"
)

// Stream is the raw log of one shard: numbered messages, append-only. Its
// implementations share the contract suite in eventlogtest. Methods are safe
// for concurrent use; appends are sent one at a time.
type Stream interface {
	Info(ctx context.Context) (Info, error)

	// Append stores one message if the log's last sequence is last. It returns
	// nil only for an ack at last+1. Its errors wrap ErrRefused, ErrUnknown,
	// ErrNoSpace or ErrClosed. data is not kept.
	Append(ctx context.Context, data []byte, last uint64) error

	// Read calls fn for each message with from <= seq <= to, in order; to = 0 is
	// the last one at the time of the call, from = 0 is the first one. A
	// sequence that is not there is a *GapError. fn owns the data; its error
	// ends the reading and is returned as it is.
	Read(ctx context.Context, from, to uint64, fn func(Message) error) error

	// Get returns one message, or an error that wraps ErrNotFound.
	Get(ctx context.Context, seq uint64) (Message, error)

	// Close releases what the stream holds, not the connection. Later calls
	// return ErrClosed.
	Close() error
}

// Message is one message of the log. Time is when the server stored it; it is
// information only.
type Message struct {
	Seq  uint64
	Data []byte
	Time time.Time
}

// Info is what the server says about the stream. One that another cluster made under its
// name holds nothing; its identity says that it is there.
type Info struct {
	First    uint64 // of an empty stream: Last+1
	Last     uint64 // 0 if the stream never held a message and began at 1
	Messages uint64
	Bytes    uint64
	Lost     []uint64 // sequences the server reports lost
	LostSize uint64   // bytes the server reports lost; may be set without Lost
	Identity string   // chosen for the stream when it was made; "" if it is not there
	Copies   int      // that it is to have; 0 if it is not there
	Whole    int      // of these, as many as its leader counts as whole now
	Leader   string   // name of the server that leads the stream; "" of one that is alone
	// Passing is how long the leader may have told less than there is: one that was just
	// elected has not applied all that it has, and one that leads no more does not know yet.
	// Only what it tells for so long is so. 0: what it tells is so.
	Passing time.Duration
}
