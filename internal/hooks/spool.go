package hooks

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mneme/internal/project"
	"mneme/memory"
)

const (
	spoolDir = "spool"

	// maxSpooled and maxSpooledBytes bound the spool. What comes on top is refused: what came
	// first keeps its place. What does not open is bounded by as much, and takes no room of the rest.
	maxSpooled      = 10_000
	maxSpooledBytes = 8 << 20
)

// Entry is a capture on its way to the node. It is the same each time it is sent.
type Entry struct {
	// Addr is the node that it is for, as memctl calls it; "" in what an earlier version kept.
	Addr      string `json:"addr,omitempty"`
	Namespace string `json:"namespace"` // "" until it is known which one Place has
	// Place is where it was said, as long as the namespace is not known.
	Place *project.Seen  `json:"place,omitempty"`
	Item  memory.Capture `json:"item"`
	Nonce string         `json:"nonce"` // tells a resend from a repetition
	At    time.Time      `json:"at"`
	// Unread says that the settings could not be read when it was said: they decide when it is sent.
	Unread bool `json:"unread,omitempty"`

	unspooled bool // it could not be spooled: what the node does not take now is gone
}

// errFull says that the spool takes no more.
var errFull = errors.New("the spool is full")

// An entry is named by when it was spooled, and by the node that it is for: a hook reads what is
// for its own node and nothing else. Earlier versions left the node out.
func entryName(nanos int64, addr string) string { return fmt.Sprintf("%020d.%s", nanos, nodeKey(addr)) }

// loneName names an entry that is spooled without the lock, among those of the same time by chance.
func loneName(nanos int64, addr string) string {
	return fmt.Sprintf("%020d-%s.%s", nanos, rand.Text(), nodeKey(addr))
}

func isLone(name string) bool { return len(name) > 20 && name[20] == '-' }

func entryTime(name string) (int64, error) {
	digits, _, _ := strings.Cut(name, ".")
	digits, _, _ = strings.Cut(digits, "-")
	return strconv.ParseInt(digits, 10, 64)
}

// forNode reports whether an entry is for one of the nodes, or does not say for which.
func forNode(name string, addrs []string) bool {
	_, node, said := strings.Cut(unmarked(name), ".")
	return !said || slices.ContainsFunc(addrs, func(addr string) bool { return nodeKey(addr) == node })
}

// nodeKey names a node without saying where it is.
func nodeKey(addr string) string { return key("node", addr)[:16] }

// spooled lists the entries, oldest first.
func (d *Disk) spooled() (names []string, err error) {
	if d.unusable != nil {
		return nil, d.unusable
	}
	names, err = d.files.names(filepath.Join(d.dir, spoolDir))
	names = slices.DeleteFunc(names, func(name string) bool {
		half := strings.HasPrefix(name, tempPrefix)
		if half {
			d.sweep(name)
		}
		return half
	})
	slices.Sort(names) // all times are equally long
	return names, err
}

// measure notes the size of all entries, and of those that do not open. Of many it takes longer than a hook
// has, so that the state has it.
func (d *Disk) measure(s *state) {
	s.Spooled, s.Sealed = 0, 0
	list, _ := os.ReadDir(filepath.Join(d.dir, spoolDir))
	for _, f := range list {
		info, err := f.Info()
		switch {
		case err != nil:
		case isSealed(f.Name()):
			s.Sealed += info.Size()
		default:
			s.Spooled += info.Size()
		}
	}
}

// sweep removes what a hook that was killed left half written.
func (d *Disk) sweep(name string) {
	if info, err := os.Lstat(d.entryPath(name)); err == nil && time.Since(info.ModTime()) > time.Minute {
		_ = d.files.remove(d.entryPath(name))
	}
}

// spoolLocked keeps entries, in order, behind all others, and says how many; errFull is for the
// rest. They outlive this process; Settle makes those outlive a power failure that the node has
// not taken by then. The lock is held.
func (d *Disk) spoolLocked(s *state, entries []Entry) (kept int, err error) {
	return d.spool(s, entries, entryName)
}

// spoolAlone does so where the lock is not to be had.
func (d *Disk) spoolAlone(s *state, entries []Entry) (kept int, err error) {
	return d.spool(s, entries, loneName)
}

func (d *Disk) spool(s *state, entries []Entry, name func(nanos int64, addr string) string) (kept int, err error) {
	names, err := d.spooled()
	if err != nil {
		return 0, err
	}
	next, sealed := time.Now().UnixNano(), 0
	if len(names) > 0 {
		if last, err := entryTime(names[len(names)-1]); err == nil {
			next = max(next, last+1) // a clock that was set back changes no order
		}
		for _, name := range names {
			if isSealed(name) {
				sealed++
			}
		}
		if s.Spooled+s.Sealed == 0 || slices.ContainsFunc(names, isLone) { // it is not known
			d.measure(s)
		}
	}
	for i, e := range entries {
		b, err := json.Marshal(e)
		if err != nil {
			return i, err
		}
		b = d.seal(spoolDir, b)
		size := int64(len(b))
		if s.Spooled+size > maxSpooledBytes || s.Sealed > maxSpooledBytes { // some may have gone since
			d.measure(s)
		}
		if len(names)-sealed+i >= maxSpooled || s.Spooled+size > maxSpooledBytes {
			return i, errFull
		}
		if sealed > maxSpooled || s.Sealed > maxSpooledBytes {
			return i, fmt.Errorf("%w: %w", errFull, d.sealedElsewhere())
		}
		s.Spooled += size
		path := d.entryPath(name(next+int64(i), e.Addr))
		if err := writeFile(d.files, path, b, false); err != nil {
			return i, err
		}
		d.unsettled = append(d.unsettled, path)
	}
	return len(entries), nil
}

// Settle makes durable what was spooled here and still waits. A hook ends behind it, so that a
// power failure takes nothing of a hook that has ended; most often the node has everything by
// then, and the disk need not be waited for.
func (d *Disk) Settle() error {
	waits := false
	for _, path := range d.unsettled {
		err := d.files.sync(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the node has it
		}
		if err != nil {
			return err
		}
		waits = true
	}
	d.unsettled = nil
	if !waits {
		return nil
	}
	return d.files.syncDir(filepath.Join(d.dir, spoolDir))
}

func (d *Disk) entryPath(name string) string { return filepath.Join(d.dir, spoolDir, name) }

// Waiting is how many captures wait, for one of the nodes or, where none is named, for any.
func (d *Disk) Waiting(addrs ...string) int {
	names, _ := d.spooled()
	if len(addrs) > 0 {
		names = slices.DeleteFunc(names, func(n string) bool { return !forNode(n, addrs) })
	}
	return len(names)
}

// shut reports whether captures wait for one of the nodes that do not open.
func (d *Disk) shut(addrs ...string) bool {
	names, _ := d.spooled()
	return slices.ContainsFunc(names, func(n string) bool { return forNode(n, addrs) && !d.opens(n) })
}

// Queue is how many captures wait for a node.
type Queue struct {
	Addr     string `json:"addr"`
	Captures int    `json:"captures"`
}

// Elsewhere lists what waits for nodes other than those, in the order of what waits longest.
func (d *Disk) Elsewhere(addrs ...string) []Queue {
	names, _ := d.spooled()
	queues, at := []Queue{}, map[string]int{}
	for _, name := range names {
		if forNode(name, addrs) || !d.opens(name) {
			continue
		}
		_, node, _ := strings.Cut(unmarked(name), ".")
		i, known := at[node]
		if !known {
			e, err := d.entry(d.entryPath(name))
			if err != nil {
				continue // the next of the same node may say it
			}
			i, at[node] = len(queues), len(queues)
			queues = append(queues, Queue{Addr: e.Addr})
		}
		queues[i].Captures++
	}
	return queues
}
