package monitor

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

const schedBatch = 3 // SCHED_BATCH of sched(7)

// Yield has the monitor of this process not interrupt others. Call it early. Nothing depends on it: an error
// says why it was not done, such as that a sandbox forbids it.
func Yield() error {
	thread, err := find()
	if err != nil {
		return err
	}
	if err := unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedBatch}, 0); err != nil {
		return fmt.Errorf("thread %d: %w", thread, err)
	}
	return nil
}

// find gives the thread that the runtime started first, which is the monitor. Threads are numbered in the
// order in which they are started; where the numbers have begun anew meanwhile it is another thread of the runtime, to which the same does no harm.
func find() (int, error) {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0, err
	}
	var threads []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n != os.Getpid() {
			threads = append(threads, n)
		}
	}
	if len(threads) == 0 {
		return 0, fmt.Errorf("no thread is listed beside the first")
	}
	return slices.Min(threads), nil
}
