package node

import (
	"strings"
	"testing"

	"mneme/internal/api"
	"mneme/memory"
)

// TestJunkInTheLogWentUnnoticed: doctor said that all was well and no metric
// counted the frames.
func TestJunkInTheLogWentUnnoticed(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	if c := n.served[0].checkVoid(); c.State != "ok" {
		t.Fatalf("%+v", c)
	}
	if _, err := n.nc.Request("mem.log.0", []byte("junk"), patience); err != nil {
		t.Fatal(err)
	}
	// The writer meets the junk at the sequence that it wants, and adopts it.
	for range 3 {
		_, err := n.writes.Capture(t.Context(), "default", []memory.Capture{{Agent: "a", Text: "what comes after the junk"}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
		if err == nil {
			break
		}
		t.Log(err)
	}
	s, err := n.operator.Status(t.Context(), true)
	if err != nil || s.Shards[0].Log.Void != 1 {
		t.Errorf("status counts %d void frames, %v", s.Shards[0].Log.Void, err)
	}
	if c := n.served[0].checkVoid(); c.State != "warn" || !strings.Contains(c.Hint, "nats-config") {
		t.Errorf("doctor: %+v", c)
	}
}

// TestCallersCutTheConnectionOfTheLog: captures, services, feeds and the log had one
// connection to the NATS in this process, which the server cuts when callers send more
// than is taken; appends and reads of the log ended with it.
func TestCallersCutTheConnectionOfTheLog(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	n.nats.CallersConn().Close()
	must(t, n, "written while nobody is heard over NATS")
	if _, err := n.operator.VerifyLog(t.Context(), nil); err != nil {
		t.Errorf("the log is not read: %v", err)
	}
}
