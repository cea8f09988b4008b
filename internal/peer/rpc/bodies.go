package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"mneme/memory"
)

// Bounds of one call and of one answer, in bytes. The large ones carry batches of
// captures, which a transport has bounded before and JSON makes longer.
const (
	maxSmall  = 1 << 20
	maxLarge  = 64 << 20
	maxHeader = 16 << 10
)

// Bounds of what a server holds of calls that come in or are worked on. Short ones have
// room of their own, so that they pass while long ones wait.
const (
	short         = 64 << 10
	roomForShort  = 16 << 20
	roomForSmall  = 16 << 20
	roomForLarge  = 128 << 20
	waitForRoom   = 2 * time.Second
	bodyTimeout   = 5 * time.Second // and a second for each MiB
	bodyPerSecond = 1 << 20
)

// bodies reads calls and bounds what is held of them. It may be used concurrently.
type bodies struct {
	most        int64
	short, long *semaphore.Weighted
}

func newBodies(most int64) *bodies {
	room := int64(roomForSmall)
	if most > maxSmall {
		room = roomForLarge
	}
	return &bodies{most: most, short: semaphore.NewWeighted(roomForShort), long: semaphore.NewWeighted(room)}
}

// read returns a call's argument, which counts until done. Errors: memory.CodeTooLarge,
// memory.CodeOverloaded, memory.CodeInvalid, before anything was done.
func (b *bodies) read(w http.ResponseWriter, r *http.Request) (in json.RawMessage, done func(), err error) {
	n := r.ContentLength
	within := http.NewResponseController(w)
	if err := within.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil { // also for what is read away
		return nil, nil, err
	}
	switch {
	case n < 0:
		return nil, nil, memory.Errorf(memory.CodeInvalid, "the call does not say how long it is")
	case n > b.most:
		return nil, nil, memory.Errorf(memory.CodeTooLarge, "a call of %d bytes is more than %d", n, b.most)
	}
	room := b.long
	if n <= short {
		room = b.short
	}
	ctx, cancel := context.WithTimeout(r.Context(), waitForRoom)
	defer cancel()
	if err := room.Acquire(ctx, n); err != nil {
		return nil, nil, memory.Errorf(memory.CodeOverloaded, "too many long calls of other nodes are under way").WithCause(err)
	}
	done = func() { room.Release(n) }
	err = within.SetReadDeadline(time.Now().Add(bodyTimeout + time.Duration(n)*time.Second/bodyPerSecond))
	in = make(json.RawMessage, n)
	if err == nil {
		_, err = io.ReadFull(r.Body, in)
	}
	if err == nil {
		err = within.SetReadDeadline(time.Time{})
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("read the call: %w", err)
	}
	return in, done, nil
}
