package spans

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// Names of spans. Those of operations on memories, and the attributes gen_ai.…, are those of
// the OpenTelemetry semantic conventions for generative AI (status: development):
// github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md, sections
// Memory and Embeddings. Requests over HTTP are named by method and route.
const (
	NATSCapture = "process mem.in"
	NATSCall    = "process mem.api"

	CreateMemory = "create_memory"
	UpdateMemory = "update_memory"
	DeleteMemory = "delete_memory"
	SearchMemory = "search_memory"
	CreateStore  = "create_memory_store"
	DeleteStore  = "delete_memory_store"

	Forward   = "forward"
	Forwarded = "forwarded"

	Queue  = "queue"
	Append = "append"
	Agree  = "agree"
	Apply  = "apply"
	Await  = "await vectors"

	Open       = "open view"
	Prepare    = "prepare"
	Embed      = "embed query"
	Find       = "find"
	Words      = "find words"
	Vectors    = "find vectors"
	Gather     = "gather"
	Score      = "score"
	Read       = "read hits"
	Embeddings = "embeddings"
)

// Attributes of spans.
const (
	Method     = attribute.Key("http.request.method")
	Route      = attribute.Key("http.route")
	StatusCode = attribute.Key("http.response.status_code")
	ErrorType  = attribute.Key("error.type")

	Messaging   = attribute.Key("messaging.system")
	Destination = attribute.Key("messaging.destination.template")

	Operation  = attribute.Key("gen_ai.operation.name")
	Store      = attribute.Key("gen_ai.memory.store.id")
	RecordID   = attribute.Key("gen_ai.memory.record.id")
	Records    = attribute.Key("gen_ai.memory.record.count")
	Provider   = attribute.Key("gen_ai.provider.name")
	Model      = attribute.Key("gen_ai.request.model")
	Dimensions = attribute.Key("gen_ai.embeddings.dimension.count")

	Shard    = attribute.Key("mneme.shard")
	Term     = attribute.Key("mneme.term")
	Position = attribute.Key("mneme.position")
	Events   = attribute.Key("mneme.events")
	Wait     = attribute.Key("mneme.wait")
	Mode     = attribute.Key("mneme.mode")
	Found    = attribute.Key("mneme.found")
	Texts    = attribute.Key("mneme.texts")
	Node     = attribute.Key("mneme.node")
	Asked    = attribute.Key("mneme.call")
)

// Kind is one sort of span.
type Kind struct {
	Name  string
	About string
	Has   []attribute.Key // what it may have beside ErrorType
}

// Request is the name in All of the spans of requests over HTTP.
const Request = "METHOD /route"

// All lists every sort of span, in the order in which a request meets them.
func All() []Kind {
	operation := func(more ...attribute.Key) []attribute.Key {
		return append([]attribute.Key{Operation, Store, Records, Position}, more...)
	}
	writing := []attribute.Key{Shard, Term, Events}
	return []Kind{
		{Request, "A request over HTTP that was let in and is neither a stream nor a probe.", []attribute.Key{Method, Route, StatusCode}},
		{NATSCapture, "A capture that was published to `mem.in`, from its arrival to its answer.", []attribute.Key{Messaging, Destination}},
		{NATSCall, "A request to a service under `mem.api`.", []attribute.Key{Messaging, Destination}},
		{CreateMemory, "A capture, on the node that leads the shard. Its position is that of the last event.", operation(Wait)},
		{UpdateMemory, "A revision.", operation(RecordID)},
		{DeleteMemory, "A forget.", operation(RecordID)},
		{SearchMemory, "A search, on the node that answers it.", operation(Mode)},
		{CreateStore, "The making of a namespace.", []attribute.Key{Operation, Store}},
		{DeleteStore, "The deletion of a namespace.", []attribute.Key{Operation, Store}},
		{Forward, "A write that another node is asked for.", []attribute.Key{Asked, Node}},
		{Forwarded, "The same on the node that was asked.", []attribute.Key{Asked}},
		{Queue, "From the queue until the event's frame is sent to the log: waiting, deciding, sealing.", writing},
		{Append, "The log takes the frame, synced.", writing},
		{Agree, "Raft agrees on the frame.", writing},
		{Apply, "The frame is applied to the state, all projections of it, on the node that leads.", writing},
		{Await, "A capture with wait=searchable waits for its vectors.", nil},
		{Open, "A read waits for its position, or for the leader's word, and opens its view.", nil},
		{Prepare, "A search parses and plans.", nil},
		{Embed, "The query's vector is made, or taken from the cache.", nil},
		{Find, "Candidates are looked for: the legs of the search follow.", nil},
		{Words, "Candidates by words.", []attribute.Key{Found}},
		{Vectors, "Candidates by vectors.", []attribute.Key{Found}},
		{Gather, "Neighbours are added, and what each word gives to each candidate is read.", []attribute.Key{Found}},
		{Score, "Candidates are scored and put in order.", nil},
		{Read, "The best are read, opened and cut.", nil},
		{Embeddings, "One request to a provider outside the process.", []attribute.Key{Operation, Provider, Model, Dimensions, Texts}},
	}
}

// KindOf finds the sort of a span by its name.
func KindOf(name string) (Kind, bool) {
	if strings.Contains(name, " /") {
		name = Request
	}
	for _, k := range All() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}
