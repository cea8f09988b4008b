//go:build unix

package verbs

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// polled gives what is read in place of standard input, so that waiting for it holds no thread:
// beside a thread that waits in a read the runtime looks around every 20 µs, which is work for a
// processor that answers somebody meanwhile. That is had for a pipe or a socket that the other
// streams do not share, since they would not wait either; anything else is given as it is. done
// leaves the stream as it was, and ends a read that is under way.
func polled(in io.Reader, others ...any) (r io.Reader, done func()) {
	f, ok := in.(*os.File)
	if !ok || !isChannel(f, others) {
		return in, func() {}
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return in, func() {}
	}
	var own *os.File
	shared := false
	if err := raw.Control(func(fd uintptr) { own, shared = unblocked(fd, f.Name()) }); err != nil || own == nil {
		return in, func() {}
	}
	return own, func() {
		_ = own.Close() // first: a read that began after the other step would block for good
		if shared {
			_ = raw.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), false) })
		}
	}
}

// unblocked is another file of the same stream, whose reads do not block; nil if there is none, or
// they do not anyway. Where the system can open a pipe once more, only that one does not block;
// else whoever has the same end of the stream shares that, until it is taken back.
func unblocked(fd uintptr, name string) (own *os.File, shared bool) {
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		return nil, false
	}
	if again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil { // not for sockets
		return os.NewFile(uintptr(again), name), false
	}
	other, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	if err := unix.SetNonblock(other, true); err != nil {
		_ = unix.Close(other)
		return nil, false
	}
	return os.NewFile(uintptr(other), name), true
}

// isChannel reports whether a file is a pipe or a socket that is none of the others.
func isChannel(f *os.File, others []any) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return false
	}
	for _, other := range others {
		o, ok := other.(*os.File)
		if !ok {
			continue
		}
		if oi, err := o.Stat(); err != nil || os.SameFile(info, oi) {
			return false
		}
	}
	return true
}
