package eventlog

import (
	"testing"
	"time"
)

// What the server has for its elections before anybody changes it.
var serversElections = [...]time.Duration{minElectionTimeout, maxElectionTimeout, hbInterval, lostQuorumInterval, lostQuorumCheck}

// The variables have the server's own values at first: if it renames one, this does
// not link; if it gives one another unit or meaning, this fails.
func TestElectionTimesAreTheServers(t *testing.T) {
	want := [...]time.Duration{4 * time.Second, 9 * time.Second, time.Second, 10 * time.Second, 10 * time.Second}
	if serversElections != want {
		t.Errorf("nats-server has %v, known is %v: look at what changed", serversElections, want)
	}
	if soonestElection <= 3*heartbeat || latestElection <= soonestElection || quorumLostAfter <= latestElection {
		t.Error("an election must wait for some heartbeats, and quorum must not be called lost before one")
	}
}
