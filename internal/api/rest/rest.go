package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"mneme/internal/api"
	"mneme/internal/auth"
	"mneme/memory"
)

// Options is what the surface is made of. Writer, Reader, Admin, Health and
// Auth are required.
type Options struct {
	Writer   Writer
	Reader   Reader
	Admin    Admin
	Health   Health
	Rejecter Rejecter // nil: refusals are not listed
	Auth     *auth.Gate
	OAuth    *auth.Issuer // whose access tokens /mcp takes, too; nil: nobody's

	Metrics    http.Handler          // serves /metrics; nil: there is none
	Registerer prometheus.Registerer // takes the request metrics; nil: none
	Web        http.Handler          // serves the page at /; nil: there is none
	// MCP makes what serves /mcp, out of a transport that sends requests to this API for whoever
	// was admitted; nil: there is none.
	MCP    func(inner http.RoundTripper) (http.Handler, error)
	Logger *slog.Logger         // nil: discarded
	Traces trace.TracerProvider // records requests; nil: none is

	// ListenAddr is the host:port of the listener: a Host header may name it.
	// If its host is unspecified, every literal IP address is accepted.
	ListenAddr string
	// AllowedHosts are more names a Host header may carry, without port.
	// "*" allows every name.
	AllowedHosts []string
	// AllowedOrigins are origins (scheme://host[:port]) of pages served
	// elsewhere that may call this node.
	AllowedOrigins []string
	// Guard takes the place of the three, where they may change.
	Guard *Guard

	// Draining ends when the node begins to stop: event streams end with it.
	// Nil: never.
	Draining context.Context

	Timeout time.Duration // of a request that is no stream; 0 = 60 s
	// BodyTimeout is how long a request's body may take to arrive; 0 = 60 s.
	BodyTimeout time.Duration
	BodyPause   time.Duration // in which some of a body has to arrive; 0 = 10 s
	Limits
	ReadWait  time.Duration    // before a read of which there are too many is refused; 0 = 2 s
	Heartbeat time.Duration    // between comments on a quiet event stream; 0 = 15 s
	SendLimit time.Duration    // in which a client has to take the next MiB; 0 = 30 s
	Now       func() time.Time // nil = time.Now
}

func (o *Options) setDefaults() error {
	if o.Writer == nil || o.Reader == nil || o.Admin == nil || o.Health == nil || o.Auth == nil {
		return errors.New("rest: Writer, Reader, Admin, Health and Auth are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	if o.BodyTimeout <= 0 {
		o.BodyTimeout = time.Minute
	}
	if o.BodyPause <= 0 {
		o.BodyPause = 10 * time.Second
	}
	if o.ReadWait <= 0 {
		o.ReadWait = 2 * time.Second
	}
	if o.Draining == nil {
		o.Draining = context.Background()
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.SendLimit <= 0 {
		o.SendLimit = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// Surface is the handler of all routes.
type Surface struct{ s *server }

// ServeHTTP implements http.Handler.
func (f *Surface) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.s.ServeHTTP(w, r) }

// SetLimits has other limits count, for what comes from now on. It may be called while
// requests are served.
func (f *Surface) SetLimits(l Limits) {
	l.setDefaults()
	f.s.bulkheads.set(l)
	f.s.bodies.max.Store(l.MaxBodies)
	f.s.results.max.Store(l.MaxResults)
	f.s.answers.max.Store(l.MaxAnswers)
}

// server holds what handlers share. But for its counters and limits it is immutable after
// New.
type server struct {
	Options
	mux       *http.ServeMux
	routes    map[string]*route // by mux pattern
	guard     *Guard
	metrics   *requestMetrics
	bodies    budget
	answers   budget // to reads
	results   budget // to batches of captures
	bulkheads bulkheads
	failures  *failures
	document  func() ([]byte, error) // of /openapi.json, made when first asked for
	mcp       http.Handler           // nil: there is none

	captures   api.JSONDecoder[memory.Capture]
	revisions  api.JSONDecoder[memory.Revision]
	searches   *searches
	graphs     *graphs
	namespaces api.JSONDecoder[memory.CreateNamespace]
	patches    api.JSONDecoder[memory.PatchNamespace]
	switches   api.JSONDecoder[memory.SwitchEmbedder]
}

// New makes the handler of all routes. It fails if a required part is missing
// or a metric is registered already.
func New(opt Options) (*Surface, error) {
	if err := opt.setDefaults(); err != nil {
		return nil, err
	}
	s := &server{
		Options: opt, mux: http.NewServeMux(), routes: map[string]*route{},
		captures:   api.NewJSONDecoder[memory.Capture](),
		revisions:  api.NewJSONDecoder[memory.Revision](),
		namespaces: api.NewJSONDecoder[memory.CreateNamespace](),
		patches:    api.NewJSONDecoder[memory.PatchNamespace](),
		switches:   api.NewJSONDecoder[memory.SwitchEmbedder](),
	}
	s.searches, s.graphs = newSearches(s), newGraphs(s)
	s.bulkheads = newBulkheads(opt.ReadWait)
	surface := &Surface{s}
	surface.SetLimits(opt.Limits)
	s.failures = &failures{log: opt.Logger, now: opt.Now}
	var err error
	if s.guard = opt.Guard; s.guard == nil {
		if s.guard, err = NewGuard(opt.ListenAddr, opt.AllowedHosts, opt.AllowedOrigins); err != nil {
			return nil, err
		}
	}
	if s.metrics, err = newRequestMetrics(opt.Registerer, s.bulkheads); err != nil {
		return nil, err
	}
	for _, rt := range s.table() {
		pattern := rt.method + " " + rt.path
		if rt.right = api.RightTo(api.KindRoute, pattern); rt.right == 0 {
			return nil, fmt.Errorf("rest: route %s is not in the registry", pattern)
		}
		s.routes[pattern] = &rt
		s.mux.Handle(pattern, s.bind(&rt))
	}
	s.document = sync.OnceValues(s.openapi)
	if s.MCP != nil {
		if s.mcp, err = s.MCP(inner{s}); err != nil {
			return nil, err
		}
	}
	return surface, nil
}

// bind turns a route into a handler: its error becomes a problem.
func (s *server) bind(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := rt.handle(w, r); err != nil {
			s.writeError(w, r, err)
		}
	})
}
