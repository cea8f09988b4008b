package monitor

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestYield: one thread is a batch thread then, and it is the one that wakes by itself while others work.
func TestYield(t *testing.T) {
	if err := Yield(); err != nil {
		t.Fatal(err)
	}
	thread, err := find()
	if err != nil {
		t.Fatal(err)
	}
	attr, err := unix.SchedGetAttr(thread, 0)
	if err != nil || attr.Policy != schedBatch {
		t.Fatalf("%+v, %v", attr, err)
	}
	if attr, err = unix.SchedGetAttr(os.Getpid(), 0); err != nil || attr.Policy == schedBatch {
		t.Errorf("the first thread: %+v, %v", attr, err)
	}
	began, woken := time.Now(), wakings(t, thread)
	for wakings(t, thread) < woken+5 { // this is work: a monitor watches it
		if time.Since(began) > time.Minute {
			t.Fatal("it did not wake: it is no monitor")
		}
	}
}

var voluntary = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s*(\d+)$`)

// wakings counts how often a thread has waited.
func wakings(t *testing.T, thread int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", thread))
	if err != nil {
		t.Fatal(err)
	}
	found := voluntary.FindSubmatch(status)
	if found == nil {
		t.Fatalf("no count in %s", status)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
