package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// RemoteOptions say how to reach an external NATS. URL is required.
//
// The external server's own configuration has to keep the node and the log in an
// account of their own; see ExternalConfig.
type RemoteOptions struct {
	URL     string
	Options []nats.Option // credentials, TLS, inbox prefix
	// System holds credentials of a user in the system account, through which
	// all servers are asked whether they sync. With it nil, MonitorURLs are
	// asked: the monitoring addresses (http://host:8222) of every server that
	// keeps the log.
	System      []nats.Option
	MonitorURLs []string
	HTTP        *http.Client // for MonitorURLs; nil means a plain one
	// Dev goes on without proof. Acknowledged events may then be lost when the
	// machine of the log loses power.
	Dev    bool
	Logger *slog.Logger // nil discards
}

// Remote is a connection to an external NATS. It is safe for concurrent use.
//
// A proof holds for one connection: behind the same address another server, or
// the same one under another configuration, may answer after a reconnect. So it
// is taken again after each, and until it is there Proven is an error.
type Remote struct {
	nc      *nats.Conn // the log's
	callers *nats.Conn
	opt     RemoteOptions
	log     *slog.Logger
	account string
	again   chan struct{} // a reconnect wants a proof
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	servers []string // of the last proof that held
	proved  uint64   // reconnects before that proof
}

const (
	remoteDialTimeout = 5 * time.Second
	remoteWait        = 250 * time.Millisecond
	remotePing        = 5 * time.Second
	proofQuiet        = 500 * time.Millisecond
	maxVarz           = 4 << 20
	proofRetry        = time.Second
)

// OpenExternal connects to an external NATS and proves that its servers sync to
// disk before they acknowledge. Without proof the error is ErrNoSyncProof,
// unless RemoteOptions.Dev. The first connection is not retried; a lost one is,
// for ever, every 250 ms, and meanwhile publishes fail at once: buffered ones
// would arrive long after their writer has given up.
func OpenExternal(ctx context.Context, opt RemoteOptions) (*Remote, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Remote{opt: opt, log: opt.Logger.With("component", "nats"), again: make(chan struct{}, 1)}
	nc, err := r.connect(ctx, append([]nats.Option{nats.Name("mneme node, log"), nats.ReconnectHandler(r.reconnected)}, opt.Options...))
	if err == nil {
		r.nc = nc
		if r.callers, err = r.connect(ctx, append([]nats.Option{nats.Name("mneme node, callers")}, opt.Options...)); err != nil {
			nc.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open external log %s: %w: %w", redactURLs(opt.URL), ErrUnreachable, err)
	}
	if r.account = accountOf(ctx, nc); r.account != nodeAccount {
		r.log.Warn("the external NATS does not keep the node in an account of its own: agents cannot reach it over NATS, and whoever shares the account can write into the log",
			"account", r.account, "hint", "memctl nats-config prints the accounts that are needed")
	}
	if err := r.Prove(ctx); err != nil && !opt.Dev {
		nc.Close()
		r.callers.Close()
		return nil, fmt.Errorf("open external log %s: %w", redactURLs(opt.URL), err)
	} else if err != nil {
		r.log.Warn("going on without proof that the log syncs to disk", "error", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.wg.Go(func() { r.proveAgain(run) })
	return r, nil
}

// proveAgain takes the proof after each reconnect, until it holds.
func (r *Remote) proveAgain(ctx context.Context) {
	for {
		select {
		case <-r.again:
		case <-ctx.Done():
			return
		}
		for logged := false; r.unproven() != nil && ctx.Err() == nil; logged = true {
			err := r.Prove(ctx)
			if err == nil {
				r.log.Info("the log's servers sync to disk", "servers", r.Servers())
				break
			}
			if !logged {
				r.log.Error("no proof since the reconnect that the log syncs to disk", "error", err)
			}
			if pause(ctx, proofRetry) != nil {
				return
			}
		}
	}
}

func (r *Remote) connect(ctx context.Context, extra []nats.Option) (*nats.Conn, error) {
	timeout := remoteDialTimeout
	if d, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(d))
	}
	if timeout <= 0 {
		return nil, ctx.Err()
	}
	if err := checkURLs(r.opt.URL); err != nil {
		return nil, err
	}
	o := []nats.Option{
		nats.Timeout(timeout),
		nats.RetryOnFailedConnect(false), nats.MaxReconnects(-1),
		nats.ReconnectWait(remoteWait), nats.ReconnectBufSize(-1),
		nats.PingInterval(remotePing), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() { // by us: nothing was lost
				r.log.Warn("lost the log's server", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { r.log.Warn("connection to the log", "error", err) }),
	}
	return nats.Connect(r.opt.URL, append(o, extra...)...)
}

// reconnected asks for a new proof.
func (r *Remote) reconnected(nc *nats.Conn) {
	r.log.Info("reached the log's server again", "server", nc.ConnectedServerName())
	select {
	case r.again <- struct{}{}:
	default:
	}
}

// Conn is the connection for the log, which the proof is about; Close closes it.
func (r *Remote) Conn() *nats.Conn { return r.nc }

// CallersConn is the connection for what callers send and get. The server cuts it
// when they send more than is taken, and that must not cut the log's.
func (r *Remote) CallersConn() *nats.Conn { return r.callers }

// Account is the NATS account that the node was put in, "" if the server did
// not say. With the configuration of ExternalConfig it is the node's own.
func (r *Remote) Account() string { return r.account }

// accountOf asks the server in which account a connection is.
func accountOf(ctx context.Context, nc *nats.Conn) string {
	ctx, cancel := context.WithTimeout(ctx, remoteDialTimeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, "$SYS.REQ.USER.INFO", nil)
	if err != nil {
		return ""
	}
	var answer struct {
		Data struct {
			Account string `json:"account"`
		} `json:"data"`
	}
	if json.Unmarshal(m.Data, &answer) != nil {
		return ""
	}
	return answer.Data.Account
}

// SyncAlways reports whether there is a proof for the present connection.
func (r *Remote) SyncAlways() bool { return r.unproven() == nil }

// Proven is nil while an acknowledgement of this connection means what it
// should; else it wraps ErrNoSyncProof. With RemoteOptions.Dev it is always nil.
func (r *Remote) Proven() error {
	if r.opt.Dev {
		return nil
	}
	return r.unproven()
}

func (r *Remote) unproven() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.servers) == 0 || r.proved != r.nc.Stats().Reconnects {
		return fmt.Errorf("%w: the connection is a new one", ErrNoSyncProof)
	}
	return nil
}

// Servers names the servers that the last proof was about.
func (r *Remote) Servers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.servers)
}

// Close ends the connection.
func (r *Remote) Close() {
	r.stop()
	r.wg.Wait()
	r.callers.Close()
	r.nc.Close()
}

// Prove asks the servers again. It succeeds only if at least one server with
// JetStream answers, all that answer sync always, and the connection stays the
// same meanwhile.
func (r *Remote) Prove(ctx context.Context) error {
	before := r.nc.Stats().Reconnects
	names, err := r.ask(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers, r.proved = names, before
	return err
}

func (r *Remote) ask(ctx context.Context) ([]string, error) {
	var (
		found []varz
		err   error
	)
	switch {
	case len(r.opt.System) > 0:
		found, err = r.askSystem(ctx)
	case len(r.opt.MonitorURLs) > 0:
		found, err = r.askMonitors(ctx)
	default:
		err = errors.New("neither system credentials nor monitoring addresses are configured")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSyncProof, err)
	}
	return syncing(found)
}

// varz is what matters of a server's status.
type varz struct {
	Name      string `json:"server_name"`
	JetStream struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	} `json:"jetstream"`
}

// syncing names the servers with JetStream; all of them have to sync always.
func syncing(found []varz) ([]string, error) {
	var names, lazy []string
	for _, v := range found {
		switch {
		case v.JetStream.Config == nil:
		case v.JetStream.Config.SyncAlways:
			names = append(names, v.Name)
		default:
			lazy = append(lazy, v.Name)
		}
	}
	switch {
	case len(lazy) > 0:
		return nil, fmt.Errorf("%w: sync_interval is not \"always\" on %s", ErrNoSyncProof, strings.Join(lazy, ", "))
	case len(names) == 0:
		return nil, fmt.Errorf("%w: no server with JetStream answered", ErrNoSyncProof)
	}
	slices.Sort(names)
	return names, nil
}

// askSystem pings all servers of the system and takes answers until it has been
// quiet for a while.
func (r *Remote) askSystem(ctx context.Context) ([]varz, error) {
	nc, err := r.connect(ctx, append([]nats.Option{nats.Name("mneme node, proof")}, r.opt.System...))
	if err != nil {
		return nil, fmt.Errorf("system account: %w", err)
	}
	defer nc.Close()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("system account: %w", err)
	}
	if err := nc.PublishRequest("$SYS.REQ.SERVER.PING.VARZ", inbox, nil); err != nil {
		return nil, fmt.Errorf("system account: %w", err)
	}
	var found []varz
	for {
		wait, cancel := context.WithTimeout(ctx, proofQuiet)
		msg, err := sub.NextMsgWithContext(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("system account: %w", ctx.Err())
		case errors.Is(err, context.DeadlineExceeded):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("system account: %w", err)
		}
		v, err := parseSystemVarz(msg.Data)
		if err != nil {
			return nil, err
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

func (r *Remote) askMonitors(ctx context.Context) ([]varz, error) {
	client := r.opt.HTTP
	if client == nil {
		client = &http.Client{Timeout: remoteDialTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	}
	var found []varz
	for _, url := range r.opt.MonitorURLs {
		err := checkURLs(url)
		var v varz
		if err == nil {
			v, err = askMonitor(ctx, client, strings.TrimSuffix(url, "/")+"/varz")
		}
		if err != nil {
			return nil, fmt.Errorf("status from %s: %w", redactURLs(url), err)
		}
		found = append(found, v)
	}
	return found, nil
}

func askMonitor(ctx context.Context, client *http.Client, url string) (varz, error) {
	var v varz
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return v, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return v, fmt.Errorf("status %s", resp.Status)
	}
	return v, json.NewDecoder(io.LimitReader(resp.Body, maxVarz)).Decode(&v)
}
