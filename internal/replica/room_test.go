package replica

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/memory"
)

// fullDisk says that nothing is free while it is full, and counts how often it did.
type fullDisk struct {
	vfs.FS
	full  atomic.Bool
	asked chan struct{}
}

func (d *fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if !d.full.Load() {
		return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 41}, nil
	}
	select {
	case d.asked <- struct{}{}:
	default:
	}
	return vfs.DiskUsage{TotalBytes: 1 << 41}, nil
}

// TestStateGoesOnWhenThereIsRoomAgain: where the disk was full before anybody refused
// writes, applying failed, the group halted, and stayed so until the next start.
func TestStateGoesOnWhenThereIsRoomAgain(t *testing.T) {
	s := newShelf(t)
	disk := &fullDisk{FS: vfs.Default, asked: make(chan struct{}, 1)}
	r := s.open(t.TempDir(), func(o *Options) { o.FS, o.ReserveBytes = disk, 1<<20 })
	r.lead()
	r.namespace("team")
	disk.full.Store(true)
	const captures = 8 // of which the disk is asked once in a megabyte
	done := make(chan error, captures)
	for range captures {
		go func() { done <- r.capture(strings.Repeat("long ", 50_000)) }()
	}
	for range 3 { // it tries again, and again
		receive(t, "question for the room", disk.asked)
	}
	if err := r.Group().Halted(); err != nil {
		t.Errorf("the group is halted: %v", err)
	}
	disk.full.Store(false)
	for range captures {
		if err := receive(t, "capture", done); err != nil {
			t.Error(err)
		}
	}
	s.sameAsLog(r.State())
}

// TestReplicaThatWaitsForRoomCloses: what is not applied yet is left to the next start.
func TestReplicaThatWaitsForRoomCloses(t *testing.T) {
	s := newShelf(t)
	dir := t.TempDir()
	disk := &fullDisk{FS: vfs.Default, asked: make(chan struct{}, 1)}
	r := s.open(dir, func(o *Options) { o.FS, o.ReserveBytes = disk, 1<<20 })
	r.lead()
	r.namespace("team")
	disk.full.Store(true)
	const captures = 8
	done := make(chan error, captures)
	for range captures {
		go func() { done <- r.capture(strings.Repeat("long ", 50_000)) }()
	}
	receive(t, "question for the room", disk.asked)
	r.close()
	for range captures {
		<-done // accepted, unknown or refused, but answered
	}
	disk.full.Store(false)
	again := s.open(dir)
	again.lead()
	s.sameAsLog(again.State())
}

// TestTermThatWaitsForRoomIsTold: whoever waited for the first writer on a full disk
// waited until there was room, and work on the state with it.
func TestTermThatWaitsForRoomIsTold(t *testing.T) {
	s := newShelf(t)
	dir := t.TempDir()
	disk := &fullDisk{FS: vfs.Default, asked: make(chan struct{}, 1)}
	change := func(o *Options) { o.FS, o.ReserveBytes = disk, 1<<20 }
	r := s.open(dir, change)
	r.lead()
	r.namespace("team")
	r.close()
	disk.full.Store(true)
	r = s.open(dir, change)
	r.stage.begin()
	receive(t, "question for the room", disk.asked)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.WaitWriter(ctx); !errors.Is(err, ErrFull) || memory.CodeOf(err) != memory.CodeNoSpace {
		t.Errorf("waiting for the writer: %v", err)
	}
	if _, err := r.Writer(); memory.CodeOf(err) != memory.CodeNoSpace {
		t.Errorf("a writer: %v", err)
	}
	renewed := make(chan error, 1)
	go func() {
		_, gone, err := r.RenewState(r.State().Generation())
		if err == nil {
			err = gone(ctx)
		}
		renewed <- err
	}()
	_ = receive(t, "end of the renewal", renewed) // for which there may be no room
	disk.full.Store(false)
	if err := r.WaitRoom(ctx); err != nil {
		t.Fatal(err)
	}
	r.awaitWriter()
	if err := r.Full(); err != nil {
		t.Error(err)
	}
	s.sameAsLog(r.State())
}
