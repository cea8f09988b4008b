package rest

import (
	"net/http"
	"reflect"
	"slices"

	"mneme/internal/api"
	"mneme/memory"
)

// route is one operation: how it is served and how it is documented.
type route struct {
	method, path string
	right        api.Right // from the registry
	handle       func(w http.ResponseWriter, r *http.Request) error

	probe  bool  // skips the Host check too: probes come by address
	stream bool  // has no deadline
	oauth  bool  // takes access tokens, too
	write  bool  // changes something: cut short, its outcome is unknown
	limit  int64 // of the request's body in bytes; 0 = maxSmallBody

	summary string
	params  []param
	body    reflect.Type   // of the request; nil = none
	batch   bool           // an array of body is fine too
	answers map[int]answer // by status
}

// answer is a documented response. Errors are documented for all routes alike.
type answer struct {
	about string
	body  reflect.Type // nil: no JSON
	media string       // "" = application/json
}

// param is one documented parameter; in is path, query or header.
type param struct {
	name, in, about string
	kind            string // string, integer, boolean, date-time; "" = string
	many            bool   // may be repeated
	enum            []any
	from, to        float64 // of an integer
	length          int     // of a string, in characters; 0 = not bounded by itself
}

const (
	maxSmallBody = 1 << 20
	mediaNDJSON  = "application/x-ndjson"
	mediaEvents  = "text/event-stream"
	mediaProblem = "application/problem+json"
	mediaBytes   = "application/octet-stream"
	mediaText    = "text/plain; charset=utf-8"
)

func typed[T any]() reflect.Type { return reflect.TypeFor[T]() }

func ok[T any](about string) map[int]answer {
	return map[int]answer{http.StatusOK: {about: about, body: typed[T]()}}
}

// table lists every route. Patterns are those of http.ServeMux.
func (s *server) table() []route {
	all := s.systemRoutes()
	all = append(all, s.namespaceRoutes()...)
	all = append(all, s.recordRoutes()...)
	all = append(all, s.graphs.routes()...)
	all = append(all, mcpRoutes(s)...)
	return append(all, s.adminRoutes()...)
}

func (s *server) systemRoutes() []route {
	all := []route{
		{method: "GET", path: "/livez", handle: s.livez, probe: true,
			summary: "Is the process alive?", answers: map[int]answer{200: {about: "It is.", media: mediaText}}},
		{method: "GET", path: "/readyz", handle: s.readyz, probe: true,
			summary: "Does this node serve reads?",
			params:  []param{{name: "verbose", in: "query", about: "Answer with every check.", kind: "boolean"}},
			answers: map[int]answer{200: {about: "It does.", body: typed[Readiness]()}}},
		{method: "GET", path: "/openapi.json", handle: s.openapiJSON,
			summary: "This document.", answers: map[int]answer{200: {about: "An OpenAPI 3.1 document.", body: typed[map[string]any]()}}},
		{method: "GET", path: "/v1/status", handle: s.status,
			summary: "The node, its shards and its embedder.",
			params:  []param{{name: "local", in: "query", about: "Name this node only, not the others of its cluster.", kind: "boolean"}},
			answers: ok[memory.Status]("The status.")},
		{method: "GET", path: "/v1/cluster", handle: func(w http.ResponseWriter, r *http.Request) error {
			return answerWith(s, w, r, func() (memory.ClusterStatus, error) { return s.Admin.Cluster(r.Context()) })
		},
			summary: "The nodes of the cluster, and the replicas of each shard.", answers: ok[memory.ClusterStatus]("The cluster as this node sees it.")},
	}
	if s.Metrics != nil {
		all = append(all, route{method: "GET", path: "/metrics", handle: plain(s.Metrics), stream: true,
			summary: "Metrics for Prometheus.", answers: map[int]answer{200: {about: "The metrics.", media: "text/plain"}}})
	}
	if s.Web != nil {
		all = append(all, route{method: "GET", path: "/{$}", handle: plain(s.Web),
			summary: "The status page.", answers: map[int]answer{200: {about: "A page for people.", media: "text/html"}}})
	}
	return all
}

func plain(h http.Handler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

func (s *server) namespaceRoutes() []route {
	const one = "/v1/namespaces/{ns}"
	return []route{
		{method: "POST", path: "/v1/namespaces", handle: s.createNamespace, write: true, body: typed[memory.CreateNamespace](),
			summary: "Create a namespace.",
			answers: map[int]answer{201: {about: "It was created.", body: typed[memory.Namespace]()}}},
		{method: "GET", path: "/v1/namespaces", handle: s.listNamespaces, params: []param{paramCursor, paramLimit},
			summary: "List the namespaces by name.", answers: ok[memory.NamespaceList]("One page.")},
		{method: "GET", path: one, handle: s.getNamespace, params: []param{pathNS},
			summary: "Describe one namespace.", answers: ok[memory.Namespace]("The namespace.")},
		{method: "PATCH", path: one, handle: s.patchNamespace, write: true, params: []param{pathNS}, body: typed[memory.PatchNamespace](),
			summary: "Change settings; null resets one to its default.", answers: ok[memory.Namespace]("The namespace after the change.")},
		{method: "DELETE", path: one, handle: s.deleteNamespace, write: true, params: []param{pathNS},
			summary: "Delete a namespace with everything in it, for good.", answers: ok[Deleted]("It was deleted.")},
		{method: "GET", path: one + "/embedder", handle: s.getEmbedder, params: []param{pathNS},
			summary: "What turns the namespace's text into vectors, and how a change of it goes.", answers: ok[memory.EmbedderStatus]("The embedder.")},
		{method: "POST", path: one + "/embedder", handle: s.switchEmbedder, write: true, params: []param{pathNS}, body: typed[memory.SwitchEmbedder](),
			summary: "Change the embedder: vectors are built beside the present ones, then searches use them.",
			answers: map[int]answer{
				200: {about: "It has that embedder already, or is on its way to it.", body: typed[memory.EmbedderStatus]()},
				202: {about: "It has begun.", body: typed[memory.EmbedderStatus]()},
			}},
		{method: "DELETE", path: one + "/embedder/building", handle: s.cancelSwitch, write: true, params: []param{pathNS},
			summary: "Give up a change of the embedder that is under way.", answers: ok[memory.EmbedderStatus]("The embedder, as it was.")},
		{method: "POST", path: one + "/events", handle: s.capture, write: true, limit: memory.MaxBatchBytes,
			params: []param{pathNS, paramWait, paramOrigin, paramAs, headerAgent, headerIdempotency},
			body:   typed[memory.Capture](), batch: true, summary: "Remember one thing, or up to 1000.",
			answers: map[int]answer{
				200: {about: "One result an item, in order. An array is answered with 200 even if items failed.", body: typed[memory.CaptureResponse]()},
				202: {about: "Accepted (wait=accepted), or stored with its vector still to come (wait=searchable).", body: typed[memory.CaptureResponse]()},
			}},
		{method: "GET", path: one + "/events", handle: s.followEvents, stream: true,
			params: append([]param{pathNS, {name: "from", in: "query", about: "Begin after this position; without it, with what happens from now on."},
				{name: "follow", in: "query", about: "false ends the stream at the present.", kind: "boolean"},
				{name: "Last-Event-ID", in: "header", about: "Resume after this position; wins over from."}}, accessParams...),
			summary: "Applied events as server-sent events; id is the position.",
			answers: map[int]answer{200: {about: "Each data field is a CloudEvent in JSON.", body: typed[memory.Event](), media: mediaEvents}}},
		{method: "POST", path: one + "/search", handle: s.searches.search, params: []param{pathNS, paramAs, headerAgent},
			body: typed[memory.SearchRequest](), summary: "Search.", answers: ok[memory.SearchResponse]("Hits, best first.")},
		{method: "POST", path: "/v1/search", handle: s.searches.searchNamespaces, params: []param{paramAs, headerAgent},
			body: typed[memory.SearchNamespaces](), summary: "Search several namespaces at once; their hits are ranked together.",
			answers: ok[memory.SearchResponse]("Hits, best first, each with its namespace; position is one for each shard concerned, separated by commas.")},
		{method: "GET", path: one + "/audit", handle: s.audit,
			params: append([]param{pathNS, paramCursor, paramLimit, {name: "from", in: "query", about: "Rows after this position."},
				{name: "actor", in: "query", about: "Rows of this agent.", length: 63},
				{name: "type", in: "query", about: "Rows of this type of event, such as memory.forgotten.", length: 63}, paramSince, paramUntil}, accessParams...),
			summary: "Who did what, oldest first.", answers: ok[memory.AuditPage]("One page.")},
		{method: "GET", path: one + "/audit/reads", handle: auditedReads(s),
			params: append([]param{pathNS, paramCursor, paramLimit, {name: "agent", in: "query", about: "Reads by this agent.", length: 63},
				{name: "record", in: "query", about: "Reads that gave this record.", length: 26}, paramSince, paramUntil}, accessParams...),
			summary: "Who was given which memories for a prompt, newest first.", answers: ok[memory.AuditedReadPage]("One page.")},
		{method: "GET", path: one + "/export", handle: s.export, stream: true, params: append([]param{pathNS}, accessParams...),
			summary: "Every living record that the agent may see, one JSON document a line.",
			answers: map[int]answer{200: {about: "A stream that breaks off was not complete; its last line may be {\"error\": problem}, which says why.", body: typed[memory.ExportLine](), media: mediaNDJSON}}},
	}
}

func (s *server) recordRoutes() []route {
	const all = "/v1/namespaces/{ns}/records"
	const one = all + "/{id}"
	fitted := slices.Concat(fitParams, accessParams)
	return []route{
		{method: "GET", path: all, handle: s.listRecords,
			params: append([]param{pathNS, paramCursor, paramLimit,
				{name: "uri", in: "query", about: "Only the living record with this uri, or 404.", length: memory.MaxURIBytes},
				{name: "kind", in: "query", about: "Any of these kinds.", many: true, enum: kindEnum()},
				{name: "tag", in: "query", about: "All of these tags.", many: true, length: memory.MaxTagRunes},
				{name: "agent", in: "query", about: "Any of these agents.", many: true, length: 63},
				{name: "scope", in: "query", about: "Only this scope.", enum: []any{"team", "agent"}},
				{name: "conversation", in: "query", about: "Only this conversation.", length: memory.MaxConversation},
				{name: "purpose", in: "query", about: "What the answer is for: inject, as of a search. Not with uri.", enum: []any{"inject"}}, paramSince, paramUntil}, fitted...),
			summary: "List records, newest first.", answers: ok[memory.RecordList]("One page.")},
		{method: "GET", path: one, handle: s.getRecord,
			params:  append([]param{pathNS, pathIDBegun, {name: "version", in: "query", about: "This version instead of the current one.", kind: "integer", from: 1, to: 1 << 30}}, accessParams...),
			summary: "Get one record; the ETag is its version.", answers: ok[memory.Record]("The record.")},
		{method: "PATCH", path: one, handle: s.reviseRecord, write: true, body: typed[memory.Revision](),
			params:  []param{pathNS, pathID, paramAs, headerAgent, headerIfMatch, headerIdempotency},
			summary: "Make a new version; fields left out stay as they are.", answers: ok[memory.RevisionResponse]("The new version.")},
		{method: "DELETE", path: one, handle: s.forgetRecord, write: true, params: []param{pathNS, pathID, paramAs, headerAgent, headerIfMatch},
			summary: "Forget a record: it is gone from every present answer.", answers: ok[memory.ForgetResponse]("It was forgotten.")},
		{method: "GET", path: one + "/history", handle: s.history, params: append([]param{pathNS, pathIDBegun}, accessParams...),
			summary: "Every version of a record, oldest first.", answers: ok[memory.History]("The history.")},
		{method: "GET", path: one + "/timeline", handle: s.timeline,
			params: append([]param{pathNS, pathIDBegun, {name: "before", in: "query", about: "How many records before it; 3 unless said.", kind: "integer", to: memory.MaxLimit},
				{name: "after", in: "query", about: "How many records after it; 3 unless said.", kind: "integer", to: memory.MaxLimit}}, fitted...),
			summary: "What surrounded a record.", answers: ok[memory.Timeline]("The record and its surroundings.")},
	}
}

func (s *server) adminRoutes() []route {
	const admin = "/v1/admin/"
	return []route{
		{method: "GET", path: admin + "version", handle: s.version, summary: "The node's build.", answers: ok[memory.VersionInfo]("The version.")},
		{method: "GET", path: admin + "doctor", handle: s.doctor, summary: "Run the node's checks.", answers: ok[memory.DoctorReport]("What was found.")},
		{method: "GET", path: admin + "rejected", handle: s.rejected, params: []param{paramLimit},
			summary: "Messages refused before the log, newest first.", answers: ok[memory.RejectedList]("The list.")},
		{method: "GET", path: admin + "quarantine", handle: s.quarantine,
			summary: "Events in the log that could not be understood.", answers: ok[memory.QuarantineList]("The list.")},
		{method: "POST", path: admin + "quarantine", body: typed[memory.PutInQuarantine](), params: []param{headerAgent}, handle: putInQuarantine(s),
			summary: "Put the event at which a shard has stopped on most nodes in quarantine, so that it goes on. It may be asked for again.",
			answers: ok[memory.InQuarantine]("It is in quarantine.")},
		{method: "GET", path: admin + "upgrade", handle: upgrade(s, s.Admin.Upgrade),
			summary: "How far an upgrade of the nodes' programs has come.", answers: ok[memory.UpgradeStatus]("What each node knows, and what the logs may use.")},
		{method: "POST", path: admin + "upgrade", handle: upgrade(s, s.Admin.FinishUpgrade),
			summary: "Let the logs use what all nodes know. It may be asked for again.", answers: ok[memory.UpgradeStatus]("How it is now.")},
		{method: "POST", path: admin + "rebuild", handle: s.rebuild, stream: true, summary: "Build the state again from the log.",
			answers: progressAnswer[memory.RebuildReport]()},
		{method: "POST", path: admin + "log/verify", handle: s.verifyLog, stream: true, summary: "Check the whole log against its chain.",
			answers: progressAnswer[memory.VerifyReport]()},
		{method: "POST", path: admin + "log/repair", handle: s.repairLog, stream: true, summary: "Write lost parts of the log again from the state.",
			answers: progressAnswer[memory.RepairReport]()},
		{method: "POST", path: admin + "clock/accept", handle: s.acceptClock,
			summary: "Go on writing with the clock as it stands, after it went forward further than real time.", answers: ok[memory.ClockReport]("The time it goes by.")},
		{method: "POST", path: admin + "reload", handle: reload(s),
			summary: "Read settings, certificates and the token again.", answers: ok[memory.ReloadReport]("What was read.")},
		{method: "GET", path: admin + "aside", handle: func(w http.ResponseWriter, r *http.Request) error {
			return answerWith(s, w, r, func() (memory.AsideList, error) { return s.Admin.Aside(r.Context()) })
		},
			summary: "What repairs have set aside on this node, the oldest first.", answers: ok[memory.AsideList]("The list.")},
		{method: "POST", path: admin + "aside/remove", body: typed[memory.RemoveAside](), handle: bodied(s, s.Admin.RemoveAside),
			summary: "Remove what repairs have set aside on this node before a time.", answers: ok[memory.AsideRemoval]("What was removed, and what is younger.")},
		{method: "GET", path: admin + "debug/bundle", handle: debugBundle(s), stream: true,
			summary: "What a report about the node needs, without secrets: a tar archive, compressed by gzip.",
			answers: map[int]answer{200: {about: "A stream that breaks off is no archive.", media: mediaBytes}}},
		{method: "GET", path: admin + "debug/profile/{kind}", handle: debugProfile(s), stream: true,
			params: []param{{name: "kind", in: "path", about: "Which profile.", enum: profiles, length: 16},
				{name: "seconds", in: "query", about: "How long cpu and trace look.", kind: "integer", from: 1, to: maxProfile}},
			summary: "A profile of the process, for go tool pprof or go tool trace.",
			answers: map[int]answer{200: {about: "The profile.", media: mediaBytes}}},
		{method: "POST", path: admin + "cluster/remove", body: typed[memory.RemoveNode](),
			handle:  bodied(s, s.Admin.RemoveNode),
			summary: "Take a node out of the cluster for ever. It may be asked for again, and carries on then.", answers: ok[memory.NodeRemoval]("It is out.")},
		{method: "POST", path: admin + "cluster/transfer", body: typed[memory.TransferLead](),
			handle:  bodied(s, s.Admin.TransferLead),
			summary: "Have a node lead the cluster.", answers: ok[memory.LeadTransfer]("It leads.")},
		{method: "POST", path: admin + "cluster/drain", body: typed[memory.DrainNode](),
			handle:  bodied(s, s.Admin.DrainNode),
			summary: "Have a node hand over what it leads, and lead nothing until that is undone or it starts again.", answers: ok[memory.NodeDrain]("How it is now.")},
		{method: "GET", path: admin + "backup/log", handle: s.backupLog, stream: true,
			params:  []param{{name: "after", in: "query", about: "Marks of an earlier backup, one for each shard, separated by commas: only what follows them is written, if this log goes on from there.", kind: "string"}},
			summary: "A backup of the log. The trailers Mneme-Position, Mneme-Frames and Mneme-Events describe it, Mneme-State-Hash and Mneme-Pipeline-Version the state that it makes.",
			answers: map[int]answer{200: {about: "A stream that breaks off is no backup.", media: mediaBytes}}},
		{method: "POST", path: admin + "backup/keys", handle: s.backupKeys, stream: true,
			params:  []param{{name: "master", in: "query", about: "Include the master key (default false): without it the backup opens only beside the same master.key.", kind: "boolean"}},
			summary: "A backup of the keyring, as secret as the memories themselves.",
			answers: map[int]answer{200: {about: "A stream that breaks off is no backup.", media: mediaBytes}}},
		{method: "GET", path: admin + "backup/destroyed", handle: func(w http.ResponseWriter, r *http.Request) error {
			return answerWith(s, w, r, func() (memory.DestroyedKeys, error) { return s.Admin.DestroyedKeys(r.Context()) })
		},
			summary: "The ids of all keys that were destroyed, which a restore destroys again.", answers: ok[memory.DestroyedKeys]("The ids. They open nothing.")},
	}
}

func progressAnswer[R any]() map[int]answer {
	return map[int]answer{200: {about: "Lines with progress, then one with the result or an error.",
		body: typed[memory.ProgressLine[R]](), media: mediaNDJSON}}
}
