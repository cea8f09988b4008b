package node

import (
	"cmp"

	"mneme/internal/api/natsapi"
	"mneme/internal/api/rest"
	"mneme/internal/ingest"
)

// Limits are how much a node does at once for those who ask it. A field that is 0 counts as
// its default. None of them is part of the log's format, so nodes of one cluster may differ.
type Limits struct {
	Connections int // over HTTP
	// Searches, Pages, Exports and Streams are reads over HTTP, each sort for itself: pages
	// are of records, versions, audit rows and namespaces, streams of events.
	Searches, Pages, Exports, Streams int
	NATSReads                         int   // all reads over NATS together
	Queue                             int   // events that wait for a frame, of each shard that the node leads
	Bodies                            int64 // bytes of the bodies of all HTTP requests under way
	Answers                           int64 // bytes of all long answers that HTTP clients have not read
}

// Defaults of Limits.
const (
	DefaultConnections = 2048
	DefaultSearches    = rest.DefaultSearches
	DefaultPages       = rest.DefaultPages
	DefaultExports     = rest.DefaultExports
	DefaultStreams     = rest.DefaultStreams
	DefaultNATSReads   = natsapi.DefaultReads
	DefaultQueue       = ingest.DefaultQueueItems
	DefaultBodies      = rest.DefaultBodies
	DefaultAnswers     = rest.DefaultAnswers
)

func (l Limits) rest() rest.Limits {
	return rest.Limits{MaxSearches: l.Searches, MaxPages: l.Pages, MaxExports: l.Exports, MaxStreams: l.Streams, MaxBodies: l.Bodies, MaxAnswers: l.Answers}
}

// setLimits has other limits count, for what comes from now on.
func (f *front) setLimits(l Limits) {
	f.queue.Store(int64(cmp.Or(l.Queue, DefaultQueue)))
	f.connections.Set(cmp.Or(l.Connections, DefaultConnections))
	if f.surface != nil {
		f.surface.SetLimits(l.rest())
	}
	if bus := f.bus.Load(); bus != nil {
		bus.SetReads(l.NATSReads)
	}
}

// queueLimit is how many events may wait for a frame in each shard.
func (f *front) queueLimit() int { return int(f.queue.Load()) }
