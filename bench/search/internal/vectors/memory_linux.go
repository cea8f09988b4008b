package vectors

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"unsafe"
)

// resident is the anonymous resident memory of this process in bytes, after a
// collection; 0 where the system does not say.
func resident() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kib int64
	fmt.Sscan(rest, &kib)
	return 1024 * kib
}

// mapped is a file of float32, mapped read-only: it is not the set's memory.
type mapped struct {
	floats []float32
	bytes  []byte
}

func mapFloats(path string, n int) (*mapped, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if n == 0 || info.Size() < int64(4*n) {
		return nil, fmt.Errorf("%s holds %d bytes, %d are wanted", path, info.Size(), 4*n)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, 4*n, syscall.PROT_READ, syscall.MAP_SHARED|syscall.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &mapped{floats: unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n), bytes: b}, nil
}

func (m *mapped) close() error { return syscall.Munmap(m.bytes) }
