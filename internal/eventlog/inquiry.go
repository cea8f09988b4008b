package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// inquiry asks the servers of an external NATS for their status. An error says who could
// not be asked; the others have answered.
type inquiry interface {
	servers(ctx context.Context) ([]varz, error)
	close()
}

const (
	proofQuiet = 500 * time.Millisecond
	maxVarz    = 4 << 20
)

func (r *Remote) inquiry() (inquiry, error) {
	switch {
	case r.opt.SystemURL != "" || len(r.opt.System) > 0:
		return &systemInquiry{r: r}, nil
	case len(r.opt.MonitorURLs) > 0:
		client := r.opt.HTTP
		if client == nil {
			config, err := r.opt.Access.tls()
			if err != nil {
				return noInquiry{}, err
			}
			client = &http.Client{Timeout: remoteDialTimeout, Transport: &http.Transport{TLSClientConfig: config}}
		}
		return &monitors{client: client, urls: r.opt.MonitorURLs}, nil
	}
	return noInquiry{}, nil
}

// noInquiry has nobody to ask.
type noInquiry struct{}

func (noInquiry) servers(context.Context) ([]varz, error) {
	return nil, ErrNobodyToAsk
}
func (noInquiry) close() {}

// varz is what matters of a server's status.
type varz struct {
	ID        string `json:"server_id"` // another one each time the server starts
	Name      string `json:"server_name"`
	JetStream struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
		Meta *struct {
			Size int `json:"cluster_size"`
		} `json:"meta"`
	} `json:"jetstream"`
}

// systemInquiry asks through the system account.
type systemInquiry struct {
	r  *Remote
	nc *nats.Conn // nil before the first question
}

func (s *systemInquiry) close() {
	if s.nc != nil {
		s.nc.Close()
	}
}

// servers pings all servers of the system and takes answers until it has been
// quiet for a while.
func (s *systemInquiry) servers(ctx context.Context) ([]varz, error) {
	found, err := s.ping(ctx)
	if err != nil {
		err = fmt.Errorf("system account: %w", err)
	}
	return found, err
}

func (s *systemInquiry) ping(ctx context.Context) ([]varz, error) {
	if s.nc == nil {
		opt, url := s.r.opt, s.r.opt.SystemURL
		if url == "" {
			url = opt.URL
		}
		who := opt.System
		if len(who) == 0 { // the URL says who
			trust, err := Access{CA: opt.Access.CA, Cert: opt.Access.Cert, Key: opt.Access.Key}.options()
			if err != nil {
				return nil, err
			}
			who = trust
		}
		nc, err := s.r.connect(ctx, url, append([]nats.Option{nats.Name("mneme node, proof")}, who...))
		if err != nil {
			return nil, refusal(err)
		}
		s.nc = nc
	}
	inbox := s.nc.NewInbox()
	sub, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only with the connection
	if err := s.nc.PublishRequest("$SYS.REQ.SERVER.PING.VARZ", inbox, nil); err != nil {
		return nil, err
	}
	var found []varz
	for {
		wait, cancel := context.WithTimeout(ctx, proofQuiet)
		msg, err := sub.NextMsgWithContext(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return found, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return found, nil
		case err != nil:
			return found, err
		}
		v, err := parseSystemVarz(msg.Data)
		if err != nil {
			return found, err
		}
		found = append(found, v)
	}
}

func parseSystemVarz(b []byte) (varz, error) {
	var answer struct {
		Data  *varz           `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return varz{}, fmt.Errorf("status of a server: %w", err)
	}
	if answer.Data == nil {
		return varz{}, fmt.Errorf("status of a server: no data: %.200s", answer.Error)
	}
	return *answer.Data, nil
}

// monitors asks the monitoring address of each server, all at once.
type monitors struct {
	client *http.Client
	urls   []string
}

func (m *monitors) close() { m.client.CloseIdleConnections() }

func (m *monitors) servers(ctx context.Context) ([]varz, error) {
	found, errs := make([]varz, len(m.urls)), make([]error, len(m.urls))
	var asking sync.WaitGroup
	for i, address := range m.urls {
		asking.Go(func() {
			err := checkURLs(address)
			if err == nil {
				found[i], err = askMonitor(ctx, m.client, strings.TrimSuffix(address, "/")+"/varz")
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s does not say how its server is: %w", redactURLs(address), err)
			}
		})
	}
	asking.Wait()
	var out []varz
	for i, v := range found {
		if errs[i] == nil {
			out = append(out, v)
		}
	}
	return out, errors.Join(errs...)
}

func askMonitor(ctx context.Context, client *http.Client, address string) (varz, error) {
	var v varz
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return v, err
	}
	resp, err := client.Do(req)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) { // who asks names the address
		err = wrapped.Err
	}
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return v, fmt.Errorf("status %s", resp.Status)
	}
	return v, json.NewDecoder(io.LimitReader(resp.Body, maxVarz)).Decode(&v)
}
