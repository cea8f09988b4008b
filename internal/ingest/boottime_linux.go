package ingest

import (
	"time"

	"golang.org/x/sys/unix"
)

// timeSinceBoot is the time since the machine was started, suspends included.
func timeSinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(processStart)
	}
	return time.Duration(t.Nano())
}
