package eventlog

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A server that runs appends to the last block of each stream and group, cuts ends off it,
// and puts other files in the place of blocks and snapshots. So a part that does not check
// may be one that was read while it changed. It is damaged if it stays as it is: read again
// copySame times, with a pause before each, it has the same fault in the same bytes.
const (
	copySame  = 3
	copyPause = 300 * time.Millisecond
	// copyReads is how often a part is read before it counts as one that changes all the
	// time. The next check looks at it again.
	copyReads = 20
)

// CopyCheck finds in the copy of a server that runs what CopyDamage finds in that of a
// stopped one. It reads the files, beside the server, and changes nothing. It is for one
// goroutine at a time.
type CopyCheck struct {
	fs    vfs.FS
	parts []copyPart
	pause time.Duration
}

// CopyDamaged is damage in the copy of a server that runs.
type CopyDamaged struct {
	fs    vfs.FS
	part  copyPart
	fault *copyFault
}

func (d *CopyDamaged) Error() string { return d.fault.Error() }

// Still reports whether it is there, as it was; a file that cannot be read now is.
func (d *CopyDamaged) Still() bool {
	now, _, err := d.part.look(d.fs)
	return err != nil || now != nil && *now == *d.fault
}

// BeginCopyCheck begins a check of what the copy below a server's directory holds now.
func BeginCopyCheck(fs vfs.FS, dir string) (*CopyCheck, error) {
	parts, err := copyParts(fs, dir)
	return &CopyCheck{fs: fs, parts: parts, pause: copyPause}, err
}

// Step looks at one file more, of at most some 8 MiB, and says how many bytes it read and
// whether any are left. The check ends at the first damage. Errors: ctx's, and that a file
// cannot be read for another reason than that its disk cannot.
func (c *CopyCheck) Step(ctx context.Context) (more bool, read int64, damage *CopyDamaged, err error) {
	if err := ctx.Err(); err != nil || len(c.parts) == 0 {
		return false, 0, nil, err
	}
	part := c.parts[0]
	c.parts = c.parts[1:]
	fault, read, err := part.look(c.fs)
	for same, reads := 0, 1; fault != nil && err == nil; reads++ {
		if same == copySame {
			return false, read, &CopyDamaged{c.fs, part, fault}, nil
		}
		if reads == copyReads {
			break
		}
		if err := pause(ctx, c.pause); err != nil {
			return false, read, nil, err
		}
		var again *copyFault
		var n int64
		again, n, err = part.look(c.fs)
		read += n
		if same++; again == nil || *again != *fault {
			same = 0
		}
		fault = again
	}
	if err != nil {
		return false, read, nil, fmt.Errorf("check the copy of the log: %w", err)
	}
	return len(c.parts) > 0, read, nil, nil
}
