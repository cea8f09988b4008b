package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"mneme/internal/events"
)

const (
	stepDownSubject = "$JS.API.STREAM.LEADER.STEPDOWN."
	leadLook        = 5 * time.Millisecond
	leadAnswer      = 100 * time.Millisecond
	// errNoCandidate is nats-server's code where the preferred server cannot lead: it
	// leads already, or is none of those that have a copy and answer.
	errNoCandidate = 10005
)

// LeadBy has the stream that counts be led by one of its servers, and returns once that
// one leads. Nobody may append meanwhile: what is sent while the servers elect is lost,
// or arrives after its sender has given it up. Errors: ctx's, those of Info, and that the
// server cannot lead.
func (l *Log) LeadBy(ctx context.Context, server string) error {
	name := events.StreamName(l.cfg.Shard, l.Ref().Epoch)
	now, err := l.Info(ctx)
	if err != nil || now.Leader == server {
		return err
	}
	ask, err := json.Marshal(map[string]any{"placement": map[string]string{"preferred": server}})
	if err != nil {
		return err
	}
	msg, err := l.nc.RequestWithContext(ctx, stepDownSubject+name, ask)
	if err != nil {
		return fmt.Errorf("%s to be led by %s: %w", name, server, err)
	}
	var said struct {
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &said); err != nil {
		return fmt.Errorf("%s to be led by %s: %w", name, server, err)
	}
	if said.Error != nil && said.Error.Code != errNoCandidate { // it may lead since a moment ago
		return fmt.Errorf("%s to be led by %s: %s", name, server, said.Error.Description)
	}
	for {
		// A question that meets the election is answered by nobody.
		if now, err := l.infoWithin(ctx, leadAnswer); err == nil && now.Leader == server {
			return nil
		} else if err == nil && said.Error != nil {
			return fmt.Errorf("%s to be led by %s: %s", name, server, said.Error.Description)
		}
		if err := pause(ctx, leadLook); err != nil {
			return fmt.Errorf("%s to be led by %s: %w", name, server, err)
		}
	}
}

func (l *Log) infoWithin(ctx context.Context, d time.Duration) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return l.Info(ctx)
}
