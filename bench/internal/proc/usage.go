package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, which is 100 on every Linux that Go runs on.
const ticksPerSecond = 100

// ErrNoUsage is returned where the system does not tell what a process uses.
var ErrNoUsage = errors.New("memory and processor time are read on Linux only")

// Memory is what a process holds in memory, in bytes.
type Memory struct{ Resident, Peak int64 }

// Memory reads the process's resident memory, now and at most.
func (n *Node) Memory() (Memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		return Memory{}, errors.Join(ErrNoUsage, err)
	}
	return parseStatus(string(b))
}

// parseStatus reads VmRSS and VmHWM of proc_pid_status(5).
func parseStatus(status string) (Memory, error) {
	var m Memory
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kb, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			m.Resident = kb << 10
		case "VmHWM:":
			m.Peak = kb << 10
		}
	}
	if m.Resident == 0 {
		return m, ErrNoUsage
	}
	return m, nil
}

// CPU reads the processor time that the process has used so far.
func (n *Node) CPU() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	if err != nil {
		return 0, errors.Join(ErrNoUsage, err)
	}
	return parseStat(string(b))
}

// parseStat reads utime and stime, the fields 14 and 15 of proc_pid_stat(5).
// The second field, the program's name, may hold anything but ends with the
// last parenthesis.
func parseStat(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, ErrNoUsage
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return time.Duration(user+system) * time.Second / ticksPerSecond, nil
}

// Quiet waits until the process uses at most share of a core over a second,
// and returns how long that took. It gives up after limit, which is no error.
func (n *Node) Quiet(ctx context.Context, share float64, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	before, err := n.CPU()
	if err != nil {
		return 0, err
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for time.Since(began) < limit {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-n.done:
			return 0, fmt.Errorf("memnode ended: %w: %s", n.ended(), n.stderr)
		case <-ticker.C:
		}
		now, err := n.CPU()
		if err != nil {
			return 0, err
		}
		if (now - before).Seconds() <= share {
			break
		}
		before = now
	}
	return time.Since(began), nil
}
