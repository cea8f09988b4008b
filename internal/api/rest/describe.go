package rest

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"mneme/internal/auth"
	"mneme/memory"
)

// described is what the document says of an operation beside what the table has: its
// name, what a caller has to know, and an example, of the request's body if it has one,
// else of the answer.
type described struct{ name, about, example string }

// Examples that several operations share.
const (
	exampleID        = "01JC2Y3K5V8Q0T4W6X7Z9A1B2C"
	exampleRecord    = `{"record_id":"` + exampleID + `","namespace":"team-a","uri":"mem://team-a/` + exampleID + `","version":1,"text":"deploys happen on Tuesdays","kind":"practice","agent":"agent-7","scope":"team","origin":"capture","occurred_at":"2026-01-31T08:00:00Z","created_at":"2026-01-31T08:00:00Z","position":"p0.0.42.0"}`
	exampleEmbedder  = `{"provider":"builtin","model":"static","dimensions":384,"space":"builtin-static"}`
	exampleNamespace = `{"name":"team-a","id":"` + exampleID + `","created_at":"2026-01-31T08:00:00Z","settings":{},"embedder":` + exampleEmbedder + `,"space":"builtin-static","records":12,"pending_vectors":0,"state_hash":"9f2c","position":"p0.0.42.0"}`
	exampleSwitching = `{"namespace":"team-a","state":"ready","embedder":` + exampleEmbedder + `,"records":12,"vectors":12,"pending_vectors":0,"kept":[],"position":"p0.0.42.0"}`
	exampleResource  = `{"resource":"https://mneme.example/mcp","authorization_servers":["https://issuer.example"],"bearer_methods_supported":["header"],"resource_name":"Mneme"}`
	exampleCheck     = `[{"name":"log","state":"ok","detail":"42 frames"}]`
)

// descriptions has each operation of the table, by method and path.
var descriptions = map[string]described{
	"GET /livez":                                    {"isAlive", "Answers as soon as the process serves HTTP. It says nothing of the state.", "ok"},
	"GET /readyz":                                   {"isReady", "200 while reads are served, also where writes are stopped; else 503 with the checks that say why. It concerns this node only.", `{"ready":true,"checks":` + exampleCheck + `}`},
	"GET /openapi.json":                             {"describeAPI", "The document that you are reading.", `{"openapi":"3.1.0"}`},
	"GET /v1/status":                                {"getStatus", "The version, the shards with their positions and state hashes, the embedder for new namespaces, and what is not well.", `{"cluster_id":"c1","nodes":[{"id":"n1","role":"leader","address":"127.0.0.1:8787","version":"1.0.0"}],"shards":[],"embedder":` + exampleEmbedder + `,"vector":{"engine":"mneme","recall_guard":{"state":"ok","recall":0.99}},"auth":"off","version":"1.0.0","uptime_s":60}`},
	"GET /v1/cluster":                               {"getCluster", "Each node with its role and whether it answers, and each shard with its leader and where its replicas stand.", `{"cluster_id":"c1","nodes":[{"id":"n1","address":"127.0.0.1:8800","role":"voter","reachable":true}],"shards":[]}`},
	"GET /metrics":                                  {"getMetrics", "Counters and gauges of this node in the text format of Prometheus.", "mneme_records 12"},
	"GET /{$}":                                      {"getStatusPage", "Namespaces, shards and nodes, in a browser.", "<!doctype html>"},
	"POST /mcp":                                     {"callMCP", "One message of JSON-RPC a request, without a session. Access tokens of the configured issuer are taken here, too.", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
	"GET " + auth.WellKnownResource:                 {"getResourceMetadata", "Hosted clients find the issuer here, if one is configured.", exampleResource},
	"GET " + auth.WellKnownResource + "/mcp":        {"getResourceMetadataOfMCP", "The same, under the name that it has for /mcp.", exampleResource},
	"POST /v1/namespaces":                           {"createNamespace", "A namespace is a team's memory and a hard wall: nothing is read or ranked across it unless a search names several. 409 if the name is taken.", `{"name":"team-a","settings":{"search.vector_weight":"0.7"}}`},
	"GET /v1/namespaces":                            {"listNamespaces", "By name, in pages: go on with the cursor until there is none.", `{"namespaces":[` + exampleNamespace + `]}`},
	"GET /v1/namespaces/{ns}":                       {"getNamespace", "Its settings, its embedder, how many records it has and the hash of its state.", exampleNamespace},
	"PATCH /v1/namespaces/{ns}":                     {"changeNamespace", "Only the settings that are named change. Unknown ones are refused.", `{"settings":{"search.vector_weight":"0.7","search.text_weight":null}}`},
	"DELETE /v1/namespaces/{ns}":                    {"deleteNamespace", "Its keys are destroyed, so that nothing of it can be read again, also from the log. A namespace that is made under the name later is another one.", `{"name":"team-a","position":"p0.0.43.0"}`},
	"GET /v1/namespaces/{ns}/embedder":              {"getEmbedder", "What is in use, what is being built, and what is kept of the spaces before.", exampleSwitching},
	"POST /v1/namespaces/{ns}/embedder":             {"switchEmbedder", "Searches use the present vectors until all of the new ones are there. Asking again for what is under way changes nothing.", `{"provider":"ollama","model":"nomic-embed-text"}`},
	"DELETE /v1/namespaces/{ns}/embedder/building":  {"cancelEmbedderSwitch", "The vectors that were built are dropped; searches have used the present ones all the time.", exampleSwitching},
	"POST /v1/namespaces/{ns}/events":               {"captureMemories", "The answer comes once the write can be read (wait=applied), unless wait says otherwise. An id of your own, or Idempotency-Key, makes it safe to send again: the second time answers duplicate.", `{"agent":"agent-7","id":"oncall-1","text":"deploys happen on Tuesdays","kind":"practice","tags":["deploy"]}`},
	"GET /v1/namespaces/{ns}/events":                {"followEvents", "Everything that is applied and that the agent may see, in order and without a gap. It can be resumed from any position.", "id: p0.0.42.0\ndata: {\"specversion\":\"1.0\",\"id\":\"" + exampleID + "\",\"source\":\"/namespaces/team-a/agents/agent-7\",\"type\":\"io.mneme.memory.captured.v1\",\"data\":{\"text\":\"deploys happen on Tuesdays\"},\"position\":\"p0.0.42.0\"}\n\n"},
	"POST /v1/namespaces/{ns}/search":               {"searchMemories", "Finds by words and by meaning. max_text, fields and budget make the answer fit the window of an agent; corrections says what words that no memory has were read as. left_off says what a budget had no room for.", `{"query":"when do we deploy","as":"agent-7","limit":6,"filter":{"kinds":["practice"]},"max_text":200,"fields":["record_id","text","score"],"budget":500}`},
	"POST /v1/search":                               {"searchNamespaces", "As a search of one namespace; at most 64 may be named, and all must be there.", `{"namespaces":["team-a","team-b"],"query":"when do we deploy"}`},
	"GET /v1/namespaces/{ns}/audit":                 {"getAudit", "One row for each event, with the hash of its sealed bytes. Without as, rows of private memories are left out.", `{"rows":[{"position":"p0.0.42.0","at":"2026-01-31T08:00:00Z","type":"memory.captured","outcome":"created","hash":"9f2c"}],"position":"p0.0.42.0"}`},
	"GET /v1/namespaces/{ns}/audit/reads":           {"listAuditedReads", "Searches and lists with the purpose inject, in a namespace whose setting audit.injections is on, and since it is. Without as, reads of private memories are left out.", `{"reads":[{"position":"p0.0.43.0","event_id":"` + exampleID + `","at":"2026-01-31T08:00:00Z","namespace":"team-a","agent":"agent-7","scope":"team","purpose":"inject","consistency":"local","read_at":"p0.0.42.0","query_hash":"9f2c5b0e6d1a48c7a3e5f70b91d2c4e6","given":[{"record_id":"` + exampleID + `","version":1}]}],"position":"p0.0.43.0"}`},
	"GET /v1/namespaces/{ns}/export":                {"exportMemories", "Oldest first, whole, in a form that can be captured again.", `{"agent":"agent-7","text":"deploys happen on Tuesdays","record_id":"` + exampleID + `","version":1,"position":"p0.0.42.0","created_at":"2026-01-31T08:00:00Z"}`},
	"POST /v1/namespaces/{ns}/graph":                {"changeGraph", "The operations are carried out in order, as one event. Entities and relations that are there are passed over, and so are unknown names of deletions; adding observations to an unknown entity fails the whole change with 404. With an id of your own, or Idempotency-Key, it is safe to send again: the second time answers duplicate, with the results of the first.", `{"agent":"agent-7","operations":[{"create_entities":[{"name":"Alice","entityType":"person","observations":["likes Go"]}]},{"create_relations":[{"from":"Alice","to":"memnode","relationType":"works on"}]}]}`},
	"GET /v1/namespaces/{ns}/graph":                 {"readGraph", "The whole graph without parameters; query searches, name opens entities. 413 where the answer would be too large: the export has no bound.", `{"entities":[{"name":"Alice","entityType":"person","observations":["likes Go"]}],"relations":[{"from":"Alice","to":"memnode","relationType":"works on"}],"position":"p0.0.42.0"}`},
	"GET /v1/namespaces/{ns}/graph/export":          {"exportGraph", "The lines are those of the official MCP memory server's file. A reader that wants a page ends the stream, and goes on after the last entity that it took.", `{"type":"entity","name":"Alice","entityType":"person","observations":["likes Go"]}`},
	"GET /v1/namespaces/{ns}/records":               {"listRecords", "In pages: go on with the cursor until there is none. A record keeps its place when it is revised. Texts are cut to max_text; get a record by its id for the whole of it.", `{"records":[` + exampleRecord + `],"cursor":"AQAAAAAAAAAqAAAAAA","position":"p0.0.42.0"}`},
	"GET /v1/namespaces/{ns}/records/{id}":          {"getRecord", "Whole, in its present version or in a former one. 404 for what is forgotten or may not be seen, 410 for what was erased, 400 if an id's beginning names several, which the error lists.", exampleRecord},
	"PATCH /v1/namespaces/{ns}/records/{id}":        {"reviseRecord", "With If-Match only if the record stands at that version, else 409. The versions before stay in its history.", `{"text":"deploys happen on Wednesdays"}`},
	"DELETE /v1/namespaces/{ns}/records/{id}":       {"forgetRecord", "Its history stays. With If-Match only if the record stands at that version, else 409.", `{"record_id":"` + exampleID + `","position":"p0.0.44.0"}`},
	"GET /v1/namespaces/{ns}/records/{id}/history":  {"getRecordHistory", "Also of a forgotten record. Of an erased version it says only that it was there.", `{"record_id":"` + exampleID + `","versions":[` + exampleRecord + `],"events":[],"position":"p0.0.42.0"}`},
	"GET /v1/namespaces/{ns}/records/{id}/timeline": {"getTimeline", "By occurred_at: in its conversation if it has one, else among everything that the agent may see.", `{"anchor":` + exampleRecord + `,"before":[],"after":[],"position":"p0.0.42.0"}`},
	"GET /v1/admin/version":                         {"getVersion", "Which build of memnode this is.", `{"version":"1.0.0","go":"go1.26","os":"linux","arch":"amd64"}`},
	"GET /v1/admin/doctor":                          {"runDoctor", "Looks at everything that can be wrong, and says of each finding what to do.", `{"checks":` + exampleCheck + `,"ok":true}`},
	"GET /v1/admin/rejected":                        {"listRejected", "Kept on this node for seven days, without their texts unless they could not be read.", `{"rejected":[],"counts":{"invalid":2}}`},
	"GET /v1/admin/quarantine":                      {"listQuarantine", "They are in the log and change nothing.", `{"quarantined":[{"position":"p0.0.7.0","code":"operator","detail":"it could not be applied"}]}`},
	"GET /v1/admin/upgrade":                         {"getUpgrade", "Until level is known, each node can be put back to the program before.", `{"level":3,"known":4,"nodes":[{"id":"n1","version":"1.1.0","level":4,"reachable":true}]}`},
	"POST /v1/admin/upgrade":                        {"finishUpgrade", "409 unless every node says that it knows this node's level. It happens by itself an hour after all do.", `{"level":4,"known":4,"nodes":[{"id":"n1","version":"1.1.0","level":4,"reachable":true}]}`},
	"POST /v1/admin/quarantine":                     {"putInQuarantine", "For a shard that has stopped at an event which no node can apply. dry_run only says whether it would be done.", `{"position":"p0.0.7.0","reason":"known defect","dry_run":true}`},
	"POST /v1/admin/rebuild":                        {"rebuildState", "Beside the present state, which serves reads meanwhile and is replaced last. The hash is the same as before.", `{"result":{"shards":[{"id":0,"position":"p0.0.42.0","state_hash":"9f2c","events":42,"took_ms":15}]}}`},
	"POST /v1/admin/log/verify":                     {"verifyLog", "Reads every frame and compares it with the chain of hashes.", `{"result":{"shards":[{"id":0,"first":1,"last":42,"frames":42,"events":42,"ok":true}]}}`},
	"POST /v1/admin/log/repair":                     {"repairLog", "Writes what the log lost from the envelopes in the state, into a new stream.", `{"result":{"shards":[{"id":0,"epoch":1,"restored":3,"events":3,"position":"p0.1.42.0"}]}}`},
	"POST /v1/admin/clock/accept":                   {"acceptClock", "Only where the clock is right and writes are refused for it.", `{"now":"2026-01-31T08:00:00Z"}`},
	"POST /v1/admin/reload":                         {"reloadSettings", "Says what has changed, what of that counts now, and what from the next start on. Settings and files that cannot be used change nothing.", `{"settings":[{"name":"log-level","from":"info","to":"debug","applied":true}],"files":[{"name":"certificate for clients","state":"same"}]}`},
	"GET /v1/admin/aside":                           {"listAside", "Nothing uses it any more, and nothing removes it by itself.", `{"aside":[{"path":"shards/0/state.damaged-1","kind":"state","why":"the state could not be used and was built again","at":"2026-01-31T08:00:00Z","bytes":4096}],"bytes":4096}`},
	"POST /v1/admin/aside/remove":                   {"removeAside", "For ever. 503 log_diverged while the log is known to be damaged, since what it lost may lie there.", `{"before":"2026-01-31T08:00:00Z","dry_run":true}`},
	"GET /v1/admin/debug/bundle":                    {"getDebugBundle", "Version, settings, status, findings of doctor, metrics, goroutines, heap profile, the last lines of the log. Answered on the admin socket only.", "(bytes)"},
	"GET /v1/admin/debug/profile/{kind}":            {"getProfile", "Answered on the admin socket only.", "(bytes)"},
	"POST /v1/admin/cluster/remove":                 {"removeNode", "A node that answers is only removed with force.", `{"node":"n3"}`},
	"POST /v1/admin/cluster/transfer":               {"transferLead", "It must be a voter.", `{"node":"n2"}`},
	"POST /v1/admin/cluster/drain":                  {"drainNode", "Before it is stopped, so that nobody has to notice.", `{"node":"n2"}`},
	"GET /v1/admin/backup/log":                      {"backupLog", "Sealed as it is: of no use without the keys.", "(bytes)"},
	"GET /v1/admin/backup/destroyed":                {"listDestroyedKeys", "They stand in the log in clear, too.", `{"cluster_id":"01K5Z0000000000000000000C0","keys":["000102030405060708090a0b0c0d0e0f"],"namespaces":[]}`},
	"POST /v1/admin/backup/keys":                    {"backupKeys", "Keep it apart from the log's backup. After an erasure earlier ones no longer open what is left.", "(bytes)"},
}

// bound is what a field of a request may be, and what it means. Lengths are in characters.
type bound struct {
	about    string
	from, to float64 // of a number
	length   int     // of a string, or of each item
	items    int     // of an array
}

// bounds has the fields of requests by their JSON names. A name means the same in all.
var bounds = map[string]bound{
	"agent":        {about: "Who says it.", length: 63},
	"agents":       {about: "Any of these agents.", length: 63, items: memory.MaxFilterValues},
	"all":          {about: "Also hits below the floor."},
	"as":           {about: "The agent that is acting. Without one only the team's memories are seen.", length: 63},
	"as_of":        {about: "Not supported yet.", length: 128},
	"at_least":     {about: "Wait until the node has reached this position.", length: 4096},
	"before":       {about: "What was set aside before this time."},
	"budget":       {about: "Tokens (cl100k_base) that the whole answer may have as JSON. What there is no room for is counted in left_off.", from: 1, to: memory.MaxBudget},
	"consistency":  {about: "How fresh the answer must be; local unless said."},
	"conversation": {about: "What the memory is part of.", length: memory.MaxConversation},
	"derived_from": {about: "The records that it was made of.", length: 26, items: memory.MaxDerivedFrom},
	"dimensions":   {about: "Of the vectors; the model's own unless said.", from: 0, to: 16384},
	"dry_run":      {about: "Only say whether it would be done."},
	"explain":      {about: "Account for each score."},
	"fields":       {about: "Only these fields of each hit; all unless said.", length: 32, items: memory.MaxFilterValues},
	"filter":       {about: "What a hit must be. It changes no score."},
	"force":        {about: "Also if it still answers. It ends then."},
	"id":           {about: "Your own id for it, with which it is safe to send again.", length: memory.MaxClientID},
	"importance":   {about: "How much it matters.", from: 0, to: 1},
	"kind":         {about: "What sort of memory it is; other unless said."},
	"kinds":        {about: "Any of these kinds.", items: memory.MaxFilterValues},
	"limit":        {about: "At most so many hits; 6 unless said.", from: 1, to: memory.MaxLimit},
	"max_text":     {about: "Characters of each text; what is cut says truncated. 1000 unless said.", from: 0, to: memory.MaxTextBytes},
	"metadata":     {about: "A JSON object of at most 16 KiB, given back as it is."},
	"min_score":    {about: "Only hits with at least this score; the namespace's floor unless said.", from: 0, to: 1},
	"mode":         {about: "By words, by vectors, or by both; both unless said."},
	"model":        {about: "As the provider calls it.", length: 256},
	"name":         {about: "A name: a-z, 0-9, _ and -, not beginning with the last two.", length: 63},
	"namespaces":   {about: "Those to search; there is no \"all\".", length: 63, items: memory.MaxNamespaces},
	"node":         {about: "Its id, or its full name.", length: 128},
	"occurred_at":  {about: "When it happened; when it was captured unless said."},
	"parts":        {about: "Steps of the search to switch on or off."},
	"position":     {about: "Of the event.", length: 128},
	"provider":     {about: "Who makes the vectors: builtin, ollama, openai, gemini or none.", length: 32},
	"purpose":      {about: "What the answer is for: inject says that it goes into a prompt as a block of memories. A namespace may have such reads audited."},
	"syntax":       {about: "How the query is read: plain takes all of it as what somebody said, with no operators in it."},
	"query":        {about: "What is looked for, in any words, at most 16 KiB.", length: memory.MaxQueryBytes},
	"reason":       {about: "For those who come after.", length: 1024},
	"role":         {about: "Of who spoke, such as user or assistant.", length: 64},
	"scope":        {about: "team: everyone in the namespace sees it; agent: only its agent."},
	"settings":     {about: "Values by names; null is the default."},
	"since":        {about: "From this time on, by occurred_at."},
	"subject":      {about: "Whose personal data it is: the unit of erasure.", length: memory.MaxSubject},
	"tags":         {about: "Words to filter by; a filter wants all of its tags.", length: memory.MaxTagRunes, items: memory.MaxTags},
	"text":         {about: "The memory, at most 256 KiB.", length: memory.MaxTextBytes},
	"undo":         {about: "Let it lead again."},
	"until":        {about: "Before this time, by occurred_at."},
	"uri":          {about: "A name of its own: mem://<namespace>/<path>, or the path alone.", length: memory.MaxURIBytes},
	"vector":       {about: "The query's vector, in the namespace's space, in place of the embedder's."},

	// Of the knowledge graph.
	"add_observations":    {about: "To entities that must be there. Those that an entity has are passed over.", items: memory.MaxGraphItems},
	"contents":            {about: "What is to be known of it.", length: memory.MaxObservation, items: memory.MaxGraphItems},
	"create_entities":     {about: "Those whose names are taken are passed over, and so is a name's second one here.", items: memory.MaxGraphItems},
	"create_relations":    {about: "Their ends need not be there.", items: memory.MaxGraphItems},
	"delete_entities":     {about: "By name, with the relations at either end.", length: memory.MaxGraphName, items: memory.MaxGraphItems},
	"delete_observations": {about: "By their exact texts.", items: memory.MaxGraphItems},
	"delete_relations":    {about: "By from, to and relationType.", items: memory.MaxGraphItems},
	"entityName":          {about: "The name of an entity.", length: memory.MaxGraphName},
	"observations":        {about: "What is known of it.", length: memory.MaxObservation, items: memory.MaxGraphItems},
	"operations":          {about: "Carried out in order; each is one of its fields.", items: memory.MaxGraphItems},
}

// requests are the types of bodies, and what those are made of.
var requests = []reflect.Type{
	typed[memory.Capture](), typed[memory.CreateNamespace](), typed[memory.DrainNode](), typed[memory.Filter](), typed[memory.PatchNamespace](),
	typed[memory.GraphChange](), typed[memory.GraphDeletion](), typed[memory.GraphObservations](), typed[memory.GraphOperation](),
	typed[memory.PutInQuarantine](), typed[memory.RemoveAside](), typed[memory.RemoveNode](), typed[memory.Revision](), typed[memory.SearchNamespaces](),
	typed[memory.SearchRequest](), typed[memory.SwitchEmbedder](), typed[memory.TransferLead](),
}

// limit writes the bounds of a request's fields into its schema. Null stays what it was.
func limit(s *jsonschema.Schema) {
	for name, field := range s.Properties {
		b := bounds[name]
		field.Description = b.about
		restrict(field, &b)
		if field.Items != nil {
			restrict(field.Items, &b)
			if b.items > 0 {
				field.MaxItems = &b.items
			}
		}
	}
}

func restrict(s *jsonschema.Schema, b *bound) {
	for _, kind := range append(s.Types, s.Type) {
		switch kind {
		case "integer", "number":
			if b.to > b.from {
				s.Minimum, s.Maximum = &b.from, &b.to
			}
		case "string":
			if len(s.Enum) == 0 && s.Format == "" && b.length > 0 {
				s.MaxLength = &b.length
			}
		}
	}
}
