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

// Memory is what a process holds in memory, in bytes. Anonymous is the part of
// Resident that is no mapped file.
type Memory struct{ Resident, Peak, Anonymous int64 }

// Memory reads the process's resident memory, now and at most.
func (n *Node) Memory() (Memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		return Memory{}, errors.Join(ErrNoUsage, err)
	}
	return parseStatus(string(b))
}

// parseStatus reads VmRSS, VmHWM and RssAnon of proc_pid_status(5).
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
		case "RssAnon:":
			m.Anonymous = kb << 10
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

// OwnCPU reads the processor time that this process has used so far.
func OwnCPU() (time.Duration, error) {
	b, err := os.ReadFile("/proc/self/stat")
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

// quietSeconds in a row have to be quiet: a node that was written to fast lets its indexes
// rest for a second before it builds the rest of them.
const quietSeconds = 3

// Quiet waits until the process uses at most share of a core over each of three seconds,
// and returns how long that took, without the last two. It gives up after limit, which is no error.
func (n *Node) Quiet(ctx context.Context, share float64, limit time.Duration) (time.Duration, error) {
	began := time.Now()
	before, err := n.CPU()
	if err != nil {
		return 0, err
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var took time.Duration // until the end of the first second of those that are quiet
	for quiet := 0; quiet < quietSeconds && time.Since(began) < limit; {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-n.done:
			return 0, n.Ended()
		case <-ticker.C:
		}
		now, err := n.CPU()
		if err != nil {
			return 0, err
		}
		if quiet++; (now - before).Seconds() > share {
			quiet = 0
		}
		if quiet <= 1 {
			took = time.Since(began)
		}
		before = now
	}
	return took, nil
}

// LoadAverage is the first number of proc_loadavg(5): how many processes ran or waited to,
// on average over a minute. "" where the system does not tell.
func LoadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	minute, _, _ := strings.Cut(string(b), " ")
	return minute
}

// Share is how much of the machine's processor time went to whom.
type Share struct{ Own, Others float64 } // 0..1 of all cores

// Watch starts watching the machine; the function it returns says how the
// processor time since then was spent: Own is this process and the children
// that it has waited for. Without /proc it returns ErrNoUsage.
func Watch() func() (Share, error) {
	busy0, all0, err0 := machineTicks()
	own0, err1 := ownTicks()
	return func() (Share, error) {
		busy, all, err2 := machineTicks()
		own, err3 := ownTicks()
		if err := errors.Join(err0, err1, err2, err3); err != nil {
			return Share{}, errors.Join(ErrNoUsage, err)
		}
		total := float64(max(all-all0, 1))
		mine := float64(own-own0) / total
		return Share{Own: mine, Others: max(float64(busy-busy0)/total-mine, 0)}, nil
	}
}

func machineTicks() (busy, all int64, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	return parseMachine(string(b))
}

// parseMachine reads the first line of proc_stat(5): user, nice, system, idle,
// iowait, irq, softirq, steal. What was stolen counts as busy: somebody had it.
func parseMachine(stat string) (busy, all int64, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, ErrNoUsage
	}
	for i, f := range fields[1:9] {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("processor time: %w", err)
		}
		all += v
		if i != 3 && i != 4 {
			busy += v
		}
	}
	return busy, all, nil
}

func ownTicks() (int64, error) {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, err
	}
	return parseOwn(string(b))
}

// parseOwn adds up utime, stime, cutime and cstime, the fields 14 to 17 of
// proc_pid_stat(5).
func parseOwn(stat string) (int64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return 0, ErrNoUsage
	}
	sum := int64(0)
	for _, f := range fields[11:15] {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time: %w", err)
		}
		sum += v
	}
	return sum, nil
}
