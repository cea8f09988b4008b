package natsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/spans"
	"mneme/memory"
)

// ServiceName is the name under which NATS tools discover the services.
const ServiceName = "mneme"

// getRequest asks for one record.
type getRequest struct {
	memory.Access
	memory.GetRequest
}

// timelineRequest asks for what surrounded one record.
type timelineRequest struct {
	memory.Access
	memory.TimelineRequest
}

// queries holds the decoders of the services' requests.
type queries struct {
	search   api.JSONDecoder[memory.SearchRequest]
	several  api.JSONDecoder[memory.SearchNamespaces]
	get      api.JSONDecoder[getRequest]
	timeline api.JSONDecoder[timelineRequest]
	revise   api.JSONDecoder[reviseRequest]
	forget   api.JSONDecoder[forgetRequest]
}

func newQueries() queries {
	return queries{
		search:   api.NewJSONDecoder[memory.SearchRequest](),
		several:  api.NewJSONDecoder[memory.SearchNamespaces](),
		get:      api.NewJSONDecoder[getRequest](),
		timeline: api.NewJSONDecoder[timelineRequest](),
		revise:   api.NewJSONDecoder[reviseRequest](),
		forget:   api.NewJSONDecoder[forgetRequest](),
	}
}

// call answers one request, mostly for a namespace.
type call func(ctx context.Context, namespace string, ask asked) (any, error)

func (s *Server) addService() error {
	service, err := micro.AddService(s.opt.Conn, micro.Config{
		Name: ServiceName, Version: discoveryVersion(s.opt.Version), QueueGroup: events.CaptureQueue,
		Description: "A memory for teams of AI agents",
	})
	if err != nil {
		return err
	}
	s.service = service
	for _, e := range []struct {
		name, subject string
		call          call
	}{{"search", ".*.search", s.search}, {"search-several", ".search", s.searchNamespaces}, {"get", ".*.get", s.get}, {"timeline", ".*.timeline", s.timeline},
		{"revise", ".*.revise", s.revise}, {"forget", ".*.forget", s.forget}} {
		public := events.SubjectAPI + e.subject
		if err := registered(api.KindService, public); err != nil {
			return err
		}
		// Responders see the mapped subject and discovery shows it; the metadata
		// says what to publish to.
		if err := service.AddEndpoint(e.name, s.endpoint(public, e.call), micro.WithEndpointSubject(events.SpokenAt(s.opt.Server, "*", public)),
			micro.WithEndpointPendingLimits(maxPending, maxPendingBytes),
			micro.WithEndpointMetadata(map[string]string{"subject": public})); err != nil {
			return fmt.Errorf("endpoint %s: %w", e.name, err)
		}
	}
	return nil
}

// endpoint answers each request on a goroutine of its own, so that a slow one
// holds up no other, and refuses what exceeds the bound.
func (s *Server) endpoint(public string, c call) micro.HandlerFunc {
	return func(req micro.Request) {
		// The answer is published directly: micro reads the request after this
		// function has returned.
		headers := nats.Header(req.Headers())
		ask := asked{public: public, subject: req.Subject(), reply: req.Reply(), as: header(headers, "Mneme-Agent"), id: header(headers, nats.MsgIdHdr), trace: header(headers, spans.Header), body: req.Data()}
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.closed {
			s.answer(s.ctx, ask, nil, errClosing)
			return
		}
		if !s.reads.Take() {
			s.answer(s.ctx, ask, nil, overloaded("requests"))
			return
		}
		s.workers.Go(func() {
			defer s.reads.Leave()
			s.serve(ask, c)
		})
	}
}

// asked is one request to a service.
type asked struct {
	public             string // the service's subject, as it is documented
	subject, reply, as string
	id                 string // Nats-Msg-Id
	trace              string // traceparent
	body               []byte
}

func (s *Server) serve(ask asked, c call) {
	ctx, span := s.begin(ask)
	ctx, cancel := context.WithTimeout(ctx, s.opt.Timeout)
	defer cancel()
	result, err := s.invoke(ctx, ask, c)
	s.answer(ctx, ask, result, err)
	spans.End(span, err)
}

// invoke turns a panic into an internal error: one bad request must not end
// the node.
func (s *Server) invoke(ctx context.Context, ask asked, c call) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.opt.Logger.LogAttrs(ctx, slog.LevelError, "request panicked", append(api.TraceOf(ctx).Attrs(), slog.String("subject", ask.subject), slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))...)
			err = memory.Errorf(memory.CodeInternal, "panic: %v", v)
		}
	}()
	_, said, err := events.ParseSpoken(ask.subject)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(said, ".") // mem.api.<namespace>.<endpoint>, or mem.api.<endpoint> for several
	if len(parts) == 3 {
		return c(ctx, "", ask)
	}
	if len(parts) != 4 {
		return nil, memory.Errorf(memory.CodeInvalid, "subject %.120q is not of the form %s.<namespace>.<name>", said, events.SubjectAPI)
	}
	if err := memory.CheckName("namespace", parts[2]); err != nil {
		return nil, err
	}
	return c(ctx, parts[2], ask)
}

// answer replies with the result, or with a problem and the headers by which
// service clients know an error.
func (s *Server) answer(ctx context.Context, ask asked, result any, err error) {
	if ask.reply == "" {
		return
	}
	m := &nats.Msg{Subject: ask.reply}
	if err == nil {
		m.Data, err = json.Marshal(result)
	}
	if err == nil && int64(len(m.Data)) > s.opt.Conn.MaxPayload() {
		err = memory.Errorf(memory.CodeTooLarge, "the answer has %d bytes, a NATS message may have %d", len(m.Data), s.opt.Conn.MaxPayload()).
			WithHint("ask for fewer results, or over REST")
	}
	if err != nil {
		e := asError(err)
		if e.Code == memory.CodeInternal {
			s.opt.Logger.LogAttrs(ctx, slog.LevelError, "request failed", append(api.TraceOf(ctx).Attrs(), slog.String("subject", ask.subject), slog.Any("error", err))...)
		}
		p := memory.ProblemOf(e)
		m.Data = encode(p)
		m.Header = nats.Header{
			micro.ErrorHeader:     {oneLine(p.Detail)},
			micro.ErrorCodeHeader: {strconv.Itoa(p.Status)},
			"Content-Type":        {"application/problem+json"},
		}
	}
	s.send(m)
}

// oneLine makes s fit for a header.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// complete checks an access and gives it the namespace and, where it names no
// agent, the header's.
func complete(a memory.Access, namespace, as string) (memory.Access, error) {
	a.Namespace = namespace
	if a.As == "" {
		a.As = as
	}
	if err := a.Validate(); err != nil {
		return a, err
	}
	return a, nil
}

func (s *Server) search(ctx context.Context, namespace string, ask asked) (any, error) {
	req, err := s.queries.search.Decode(ask.body)
	if err != nil {
		return nil, err
	}
	acc, err := complete(memory.Access{As: req.As, AtLeast: req.AtLeast, Consistency: req.Consistency}, namespace, ask.as)
	if err != nil {
		return nil, err
	}
	req.As = acc.As
	if err := req.Validate(); err != nil {
		return nil, err
	}
	resp, err := s.opt.Reader.Search(ctx, acc, req)
	return shownHits(resp, req.Fields, err)
}

// searchNamespaces searches several namespaces.
func (s *Server) searchNamespaces(ctx context.Context, _ string, ask asked) (any, error) {
	req, err := s.queries.several.Decode(ask.body)
	if err != nil {
		return nil, err
	}
	acc, err := complete(memory.Access{As: req.As, AtLeast: req.AtLeast, Consistency: req.Consistency}, "", ask.as)
	if err != nil {
		return nil, err
	}
	req.As = acc.As
	if err := req.Validate(); err != nil {
		return nil, err
	}
	resp, err := s.opt.Reader.SearchNamespaces(ctx, acc, req)
	return shownHits(resp, req.Fields, err)
}

// shownHits is a search's answer with the fields that were asked for.
func shownHits(resp memory.SearchResponse, fields []string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if resp.Results == nil {
		resp.Results = []memory.Hit{}
	}
	return resp.Shown(fields)
}

func (s *Server) get(ctx context.Context, namespace string, ask asked) (any, error) {
	req, err := s.queries.get.Decode(ask.body)
	if err != nil {
		return nil, err
	}
	acc, err := complete(req.Access, namespace, ask.as)
	if err != nil {
		return nil, err
	}
	if err := req.GetRequest.Validate(); err != nil {
		return nil, err
	}
	if req.ID != "" {
		return s.opt.Reader.Get(ctx, acc, req.ID, req.Version)
	}
	full, bad := memory.FullURI(namespace, req.URI)
	if bad != nil {
		return nil, bad
	}
	return s.opt.Reader.Get(ctx, acc, full, req.Version)
}

func (s *Server) timeline(ctx context.Context, namespace string, ask asked) (any, error) {
	req, err := s.queries.timeline.Decode(ask.body)
	if err != nil {
		return nil, err
	}
	acc, err := complete(req.Access, namespace, ask.as)
	if err != nil {
		return nil, err
	}
	if err := req.TimelineRequest.Validate(); err != nil {
		return nil, err
	}
	tl, err := s.opt.Reader.Timeline(ctx, acc, req.TimelineRequest)
	if err != nil {
		return nil, err
	}
	return tl.Shown(req.Fields)
}
