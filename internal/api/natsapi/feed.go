package natsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/memory"
)

// runFeed announces applied events until ctx ends. A feed that fails is opened
// again after a while; what happened in between is not announced, since feeds
// are live: the events stream of REST resumes.
func (s *Server) runFeed(ctx context.Context) {
	for {
		err := s.opt.Feed.Feed(ctx, s.announce)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it ended")
		}
		s.opt.Logger.Warn("feed interrupted", "error", err, "retry_in", s.opt.FeedRetry)
		timer := time.NewTimer(s.opt.FeedRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// announce publishes one event as a CloudEvent in structured mode. An event too
// large for a message is announced without its data.
func (s *Server) announce(subject string, ev memory.Event) error {
	b, err := json.Marshal(ev)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", ev.ID, err)
	}
	if int64(len(b)) > s.opt.Conn.MaxPayload() {
		ev.Data, ev.DataContentType = nil, ""
		if b, err = json.Marshal(ev); err != nil {
			return fmt.Errorf("encode event %s: %w", ev.ID, err)
		}
	}
	m := &nats.Msg{Subject: subject, Data: b, Header: nats.Header{"Content-Type": {contentTypeCloudEvent}}}
	if err := s.opt.Conn.PublishMsg(m); err != nil {
		return fmt.Errorf("announce on %s: %w", subject, err)
	}
	return nil
}
