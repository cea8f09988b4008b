package rest

// Limits are how much of what is asked for a node does at once. A field that is 0 counts as
// its default. Of a body or an answer one alone always has room where the limit of all is
// at least memory.MaxBatchBytes.
type Limits struct {
	MaxBodies  int64 // bytes of all bodies under way; 0 = DefaultBodies
	MaxResults int64 // bytes of the answers to all batches of captures under way; 0 = 64 MiB
	MaxAnswers int64 // bytes of all long answers that clients have not read; 0 = DefaultAnswers

	// How many reads of a sort are worked on side by side; more wait for ReadWait.
	MaxGets     int // 0 = 64
	MaxSearches int // 0 = DefaultSearches
	MaxPages    int // 0 = DefaultPages
	MaxExports  int // 0 = DefaultExports; more are refused at once
	MaxStreams  int // of events; 0 = DefaultStreams; more are refused at once
	MaxCalls    int // of /mcp; 0 = 256
}

// Defaults of Limits.
const (
	DefaultBodies   = 64 << 20
	DefaultAnswers  = 128 << 20
	DefaultSearches = 32
	DefaultPages    = 8
	DefaultExports  = 16
	DefaultStreams  = 512
)

func (l *Limits) setDefaults() {
	for _, bytes := range []struct {
		max   *int64
		unset int64
	}{{&l.MaxBodies, DefaultBodies}, {&l.MaxResults, 64 << 20}, {&l.MaxAnswers, DefaultAnswers}} {
		if *bytes.max <= 0 {
			*bytes.max = bytes.unset
		}
	}
	for _, side := range []struct {
		max   *int
		unset int
	}{{&l.MaxGets, 64}, {&l.MaxSearches, DefaultSearches}, {&l.MaxPages, DefaultPages}, {&l.MaxExports, DefaultExports}, {&l.MaxStreams, DefaultStreams}, {&l.MaxCalls, 256}} {
		if *side.max <= 0 {
			*side.max = side.unset
		}
	}
}
