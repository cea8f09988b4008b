package eventlog

import (
	"time"
	_ "unsafe" // for go:linkname

	_ "github.com/nats-io/nats-server/v2/server" // whose variables these are
)

// nats-server waits 4 to 9 seconds before it elects another leader of a stream, which
// suits clusters over slow networks. It has no option for that, only the package's
// variables, which its own tests shorten. TestElectionTimesAreTheServers notices when
// they vanish or change their meaning.
//
//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
var minElectionTimeout time.Duration

//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var maxElectionTimeout time.Duration

//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
var hbInterval time.Duration

//go:linkname lostQuorumInterval github.com/nats-io/nats-server/v2/server.lostQuorumInterval
var lostQuorumInterval time.Duration

//go:linkname lostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
var lostQuorumCheck time.Duration

// Times between nodes of one site: a leader that is gone is replaced within about a
// second, and one heartbeat that comes late replaces nobody.
const (
	soonestElection = 700 * time.Millisecond
	latestElection  = 1500 * time.Millisecond
	heartbeat       = 200 * time.Millisecond
	quorumLostAfter = 2 * time.Second
)

// ShortenElections has the servers of this process elect sooner than nats-server's
// defaults. It must come before the first of them that is one of several, and comes by
// itself with ClusterOptions.
func ShortenElections() { shortened.Do(shortenElections) }

// shortenElections is for the whole process and must come before its first server.
func shortenElections() {
	minElectionTimeout, maxElectionTimeout, hbInterval = soonestElection, latestElection, heartbeat
	lostQuorumInterval, lostQuorumCheck = quorumLostAfter, quorumLostAfter
}
