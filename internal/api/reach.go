package api

// Right is what a caller must have to reach something.
type Right int

// The rights. The zero value is none of them: what has no right is not served.
const (
	RightOpen  Right = iota + 1 // anybody who reaches the address
	RightRead                   // whoever was admitted
	RightWrite                  // whoever was admitted; it changes memories or namespaces
	RightAdmin                  // the operator: it concerns the node as a whole
	RightLocal                  // the operator on the node's own machine, through the admin socket
)

func (r Right) String() string {
	if r < RightOpen || r > RightLocal {
		return "none"
	}
	return [...]string{"open", "read", "write", "admin", "local"}[r-1]
}

// Kind is how something is reached.
type Kind string

// The kinds.
const (
	KindRoute   Kind = "route"   // Name is a pattern of http.ServeMux
	KindCapture Kind = "capture" // Name is a subject that callers publish to
	KindService Kind = "service" // Name is a subject that callers send requests to
	KindFeed    Kind = "feed"    // Name is a subject that callers subscribe to
)

// Reachable is one thing that can be reached from outside.
type Reachable struct {
	Kind  Kind
	Name  string
	Right Right
}

// Registry is everything that can be reached from outside, and the right that
// each needs. A transport serves what stands here and nothing else.
func Registry() []Reachable {
	const ns, rec = "/v1/namespaces/{ns}", "/v1/namespaces/{ns}/records"
	var all []Reachable
	add := func(k Kind, right Right, names ...string) {
		for _, name := range names {
			all = append(all, Reachable{k, name, right})
		}
	}
	add(KindRoute, RightOpen, "GET /{$}", "GET /livez", "GET /readyz", "GET /openapi.json",
		"GET /.well-known/oauth-protected-resource", "GET /.well-known/oauth-protected-resource/mcp")
	add(KindRoute, RightRead, "GET /metrics", "GET /v1/status", "GET /v1/cluster", "GET /v1/admin/version",
		"GET /v1/namespaces", "GET "+ns, "GET "+ns+"/embedder", "GET "+ns+"/events", "POST "+ns+"/search", "POST /v1/search", "GET "+ns+"/audit", "GET "+ns+"/audit/reads", "GET "+ns+"/export", "GET "+ns+"/graph", "GET "+ns+"/graph/export",
		"GET "+rec, "GET "+rec+"/{id}", "GET "+rec+"/{id}/history", "GET "+rec+"/{id}/timeline")
	add(KindRoute, RightWrite, "POST /v1/namespaces", "PATCH "+ns, "DELETE "+ns,
		"POST "+ns+"/embedder", "DELETE "+ns+"/embedder/building", "POST "+ns+"/events", "POST "+ns+"/graph",
		"PATCH "+rec+"/{id}", "DELETE "+rec+"/{id}", "POST /mcp")
	// Keys, whole copies, what costs the node as a whole, and lists that show
	// what every caller of every namespace did wrong.
	add(KindRoute, RightAdmin, "GET /v1/admin/doctor", "GET /v1/admin/rejected", "GET /v1/admin/quarantine",
		"POST /v1/admin/quarantine", "POST /v1/admin/reload", "GET /v1/admin/aside", "POST /v1/admin/aside/remove", "GET /v1/admin/upgrade", "POST /v1/admin/upgrade", "POST /v1/admin/clock/accept", "POST /v1/admin/cluster/remove", "POST /v1/admin/cluster/transfer", "POST /v1/admin/cluster/drain",
		"POST /v1/admin/rebuild", "POST /v1/admin/log/verify", "POST /v1/admin/log/repair",
		"GET /v1/admin/backup/log", "POST /v1/admin/backup/keys", "GET /v1/admin/backup/destroyed")
	// What looks into the process.
	add(KindRoute, RightLocal, "GET /v1/admin/debug/bundle", "GET /v1/admin/debug/profile/{kind}")
	add(KindCapture, RightWrite, "mem.in.>")
	add(KindService, RightRead, "mem.api.*.search", "mem.api.search", "mem.api.*.get", "mem.api.*.timeline", "$SRV.>")
	add(KindService, RightWrite, "mem.api.*.revise", "mem.api.*.forget")
	add(KindFeed, RightRead, "mem.feed.>")
	return all
}

// RightTo is the right that something needs; 0 if it is not registered.
func RightTo(k Kind, name string) Right {
	for _, r := range Registry() {
		if r.Kind == k && r.Name == name {
			return r.Right
		}
	}
	return 0
}
