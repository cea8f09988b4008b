// Package natsapi is Mneme's NATS surface: captures published to mem.in, the
// search, get, timeline, revise and forget services under mem.api, and the feeds
// under mem.feed.
//
// Its job: parse → call → reply. A message with a reply subject gets a true
// PubAck or a true error, in the shape JetStream clients expect; one without is
// best effort and its refusal is counted.
//
// Invariants:
//   - What arrived on one subject is written in its order of arrival.
//   - Work is bounded: in messages, in bytes, in concurrent requests. Beyond the
//     bounds the answer is "overloaded" at once. What comes faster than it can
//     even be refused is dropped and counted.
//   - One subject's captures, malformed or not, take one lane of sixteen.
//   - Close answers or refuses everything that was taken, and waits for it.
//   - An answer goes to an inbox or nowhere.
//
// Not its job: connecting, permissions (the log's server holds them), deciding.
package natsapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.opentelemetry.io/otel/trace"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/slots"
	"mneme/memory"
)

// Writer changes memories.
type Writer interface {
	// Capture gives one result an item, in order; the error concerns the request as a whole.
	Capture(ctx context.Context, namespace string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error)
	Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error)
	Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error)
}

// Reader answers reads. One call authorises, waits for the freshness that the
// access asks for, and reads.
type Reader interface {
	Search(ctx context.Context, acc memory.Access, req memory.SearchRequest) (memory.SearchResponse, error)
	// SearchNamespaces searches those that the request names, whatever the access says.
	SearchNamespaces(ctx context.Context, acc memory.Access, req memory.SearchNamespaces) (memory.SearchResponse, error)
	Get(ctx context.Context, acc memory.Access, idOrURI string, version int) (memory.Record, error)
	Timeline(ctx context.Context, acc memory.Access, req memory.TimelineRequest) (memory.Timeline, error)
}

// Rejecter counts and lists what was refused before the log.
type Rejecter interface {
	Reject(memory.Rejected)
	// Count counts a refused message that is not listed. It returns at once.
	Count(code memory.Code)
}

// FeedSource yields applied events with the subject each is announced on, from
// one goroutine, until yield fails or ctx ends. An earlier return is a failure.
type FeedSource interface {
	Feed(ctx context.Context, yield func(subject string, ev memory.Event) error) error
}

// Options is what the surface is made of. Conn, Writer and Reader are required.
type Options struct {
	Conn     *nats.Conn // the node's own; Close leaves it open
	Writer   Writer
	Reader   Reader
	Rejecter Rejecter             // nil: refusals are not listed
	Feed     FeedSource           // nil: nothing is announced
	Traces   trace.TracerProvider // records requests; nil: none is
	Logger   *slog.Logger
	Version  string // of the build, for discovery
	// Server is the name of the log's server in this process, if it is one of several:
	// what its callers publish comes here. "" = there is one server.
	Server string
	// Later takes no captures before Take.
	Later bool

	Lanes     int           // captures written side by side; 0 = 16
	LaneDepth int           // messages that may wait in one lane; 0 = 1024
	MaxBytes  int64         // of all captures taken and not yet answered; 0 = 64 MiB
	Reads     int           // requests to services side by side; 0 = DefaultReads
	Timeout   time.Duration // of one write or read; 0 = 30 s
	FeedRetry time.Duration // before a failed feed is opened again; 0 = 1 s
}

// DefaultReads is how many reads are worked on side by side where Options do not say.
const DefaultReads = 64

func (o *Options) setDefaults() error {
	if o.Conn == nil || o.Writer == nil || o.Reader == nil {
		return errors.New("natsapi: Conn, Writer and Reader are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		v     *int
		value int
	}{{&o.Lanes, 16}, {&o.LaneDepth, 1024}, {&o.Reads, DefaultReads}} {
		if *d.v <= 0 {
			*d.v = d.value
		}
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.FeedRetry <= 0 {
		o.FeedRetry = time.Second
	}
	return nil
}

// Server is the running surface.
type Server struct {
	opt    Options
	parser *parser
	ctx    context.Context // of all work; ends when Close gives up waiting
	cancel context.CancelFunc

	taking   taking
	refusals *refusals // nil without a rejecter
	lanes    []chan *intake
	seed     maphash.Seed  // keeps a subject in one lane, and so in order
	under    atomic.Int64  // captures taken and not yet answered
	bytes    atomic.Int64  // of those
	foreign  atomic.Uint64 // answers dropped for their reply subject

	service micro.Service
	reads   *slots.Pool // one is taken by each request to a service under way
	queries queries

	stopFeed context.CancelFunc

	mu      sync.RWMutex // held for reading while work is handed over
	closed  bool
	workers sync.WaitGroup // lanes, reads and the feed
}

// Start subscribes and begins to answer.
func Start(opt Options) (*Server, error) {
	if err := opt.setDefaults(); err != nil {
		return nil, err
	}
	s := &Server{opt: opt, parser: newParser(), seed: maphash.MakeSeed(), reads: slots.New(opt.Reads), queries: newQueries()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if opt.Rejecter != nil {
		s.refusals = newRefusals(opt.Rejecter)
	}
	s.lanes = make([]chan *intake, opt.Lanes)
	for i := range s.lanes {
		s.lanes[i] = make(chan *intake, opt.LaneDepth)
		s.workers.Go(func() { s.runLane(s.lanes[i]) })
	}
	feedCtx, stopFeed := context.WithCancel(s.ctx)
	s.stopFeed = stopFeed
	if err := s.subscribe(); err != nil {
		return nil, errors.Join(err, s.Close(context.Background()))
	}
	if opt.Feed != nil {
		s.workers.Go(func() { s.runFeed(feedCtx) })
	}
	return s, nil
}

// SetReads has another number of reads be worked on side by side, from now on; 0 =
// DefaultReads.
func (s *Server) SetReads(n int) { s.reads.Set(cmp.Or(max(n, 0), DefaultReads)) }

func (s *Server) subscribe() error {
	err := registered(api.KindCapture, events.SubjectIn+".>")
	if err != nil {
		return err
	}
	if !s.opt.Later {
		release, err := s.Take()
		if err != nil {
			return err
		}
		release()
	}
	if err := s.addService(); err != nil {
		return fmt.Errorf("serve %s: %w", events.SubjectAPI, err)
	}
	// The server must know the subscriptions before anyone is told to publish.
	if err := s.opt.Conn.FlushTimeout(s.opt.Timeout); err != nil {
		return fmt.Errorf("serve %s: %w", events.SubjectAPI, err)
	}
	return nil
}

// registered refuses to serve what nobody has given a right.
func registered(k api.Kind, name string) error {
	if api.RightTo(k, name) == 0 {
		return fmt.Errorf("natsapi: %s %s is not in the registry", k, name)
	}
	return nil
}

// lastAnswers bounds how long a server that cannot be reached is waited for at the end.
const lastAnswers = 2 * time.Second

// Close stops taking messages, finishes what was taken and waits for it. When
// ctx ends first, work under way is cut short; it is waited for all the same.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.stopFeed()
	var errs []error
	errs = append(errs, s.taking.stop())
	if s.service != nil {
		errs = append(errs, ignoreClosed(s.service.Stop()))
	}
	for _, lane := range s.lanes {
		close(lane) // nothing is handed over any more: closed is set
	}
	stop := context.AfterFunc(ctx, s.cancel)
	s.workers.Wait()
	stop()
	if s.refusals != nil {
		s.refusals.close()
	}
	s.cancel()
	if !s.opt.Conn.IsClosed() {
		if err := ignoreClosed(s.opt.Conn.FlushTimeout(lastAnswers)); err != nil {
			s.opt.Logger.Warn("the last answers may not have been sent", "error", err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close NATS surface: %w", err)
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

var errClosing = memory.Errorf(memory.CodeUnavailable, "the node is shutting down").WithHint("try again in a moment")

var semVer = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// discoveryVersion is the build's version as services must name it.
func discoveryVersion(v string) string {
	if len(v) > 1 && v[0] == 'v' {
		v = v[1:]
	}
	if semVer.MatchString(v) {
		return v
	}
	return "0.0.0"
}
