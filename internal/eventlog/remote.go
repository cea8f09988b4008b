package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// RemoteOptions say how to reach an external NATS. URL is required.
//
// The external servers' own configuration has to keep the node and the log in an
// account of their own; see ExternalConfig.
type RemoteOptions struct {
	// URL is the address of the server, or of several of one cluster, separated by
	// commas: these are used and no others that the servers may name.
	URL     string
	Access  Access
	Options []nats.Option // beside those of Access
	// SystemURL and System reach the system account, through which all servers are
	// asked whether they sync; "" is URL. With neither given, MonitorURLs are asked: the
	// monitoring addresses (http://host:8222) of every server that keeps the log.
	SystemURL   string
	System      []nats.Option
	MonitorURLs []string
	HTTP        *http.Client // for MonitorURLs; nil makes one of Access
	// Dev goes on without proof. Acknowledged events may then be lost when the
	// machine of the log loses power.
	Dev    bool
	Logger *slog.Logger // nil discards
}

// Remote is a connection to an external NATS. It is safe for concurrent use.
//
// It knows of each server whether it syncs before it acknowledges, and asks again every
// second and after each reconnect: behind an address another server may answer, or
// the same one under another configuration. See Vouch.
type Remote struct {
	nc      *nats.Conn // the log's
	callers *nats.Conn
	opt     RemoteOptions
	asks    inquiry
	log     *slog.Logger
	account string
	again   chan struct{} // a reconnect wants a proof
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu    sync.Mutex
	proof proof
}

const (
	remoteDialTimeout = 2 * time.Second
	remoteWait        = 250 * time.Millisecond
	remoteJitter      = 100 * time.Millisecond
	remotePing        = 2 * time.Second
	proofEvery        = time.Second
)

// OpenExternal connects to an external NATS and proves that its servers sync to
// disk before they acknowledge. Without proof the error is ErrNoSyncProof, and
// ErrLazySync where a server says that it does not, unless RemoteOptions.Dev. The first
// connection is not retried; a lost one is, for ever, every 250 ms, and meanwhile
// publishes fail at once: buffered ones would arrive long after their writer has given up.
func OpenExternal(ctx context.Context, opt RemoteOptions) (*Remote, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	access, err := opt.Access.options()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", redactURLs(opt.URL), err)
	}
	opt.Options = append(access, opt.Options...)
	r := &Remote{opt: opt, log: opt.Logger.With("component", "nats"), again: make(chan struct{}, 1), proof: newProof(nil)}
	nc, err := r.connect(ctx, opt.URL, append([]nats.Option{nats.Name("mneme node, log"), nats.ReconnectHandler(r.reconnected)}, opt.Options...))
	if err == nil {
		r.nc = nc
		if r.callers, err = r.connect(ctx, opt.URL, append([]nats.Option{nats.Name("mneme node, callers")}, opt.Options...)); err != nil {
			nc.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", redactURLs(opt.URL), ErrUnreachable, refusal(err))
	}
	r.proof.conn = r.nc
	if r.account = accountOf(ctx, nc); r.account != nodeAccount {
		r.log.Warn("the external NATS does not keep the node in an account of its own: agents cannot reach it over NATS, and whoever shares the account can write into the log",
			"account", r.account, "hint", "memctl nats-config prints the accounts that are needed")
	}
	if r.asks, err = r.inquiry(); err == nil {
		err = r.Prove(ctx)
	}
	if err != nil && !opt.Dev {
		nc.Close()
		r.callers.Close()
		r.asks.close()
		return nil, fmt.Errorf("%s: %w", redactURLs(opt.URL), err)
	} else if err != nil {
		r.log.Warn("going on without proof that the log syncs to disk", "error", err)
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.wg.Go(func() { r.prove(run) })
	return r, nil
}

// refusal says of an error to connect that the server does not know the caller.
func refusal(err error) error {
	for _, known := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, nats.ErrNkeysNotSupported} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %w", ErrCredentials, err)
		}
	}
	return err
}

// prove asks the servers again and again, and at once after a reconnect.
func (r *Remote) prove(ctx context.Context) {
	tick := time.NewTicker(proofEvery)
	defer tick.Stop()
	said := r.unproven()
	for {
		select {
		case <-r.again:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		round, cancel := context.WithTimeout(ctx, 2*remoteDialTimeout)
		err := r.Prove(round)
		cancel()
		r.lookAtCopies(ctx)
		if now := r.unproven(); ctx.Err() == nil && (now == nil) != (said == nil) {
			if said = now; now == nil {
				r.log.Info("the log's servers sync to disk", "servers", r.Servers())
			} else {
				r.log.Error("nothing is written: it is not proven that the log syncs to disk", "error", now, "asked", err)
			}
		}
	}
}

func (r *Remote) connect(ctx context.Context, url string, extra []nats.Option) (*nats.Conn, error) {
	timeout := remoteDialTimeout
	if d, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(d))
	}
	if timeout <= 0 {
		return nil, ctx.Err()
	}
	if err := checkURLs(url); err != nil {
		return nil, err
	}
	o := []nats.Option{
		nats.Timeout(timeout),
		nats.RetryOnFailedConnect(false), nats.MaxReconnects(-1),
		nats.ReconnectWait(remoteWait), nats.ReconnectJitter(remoteJitter, remoteJitter), nats.ReconnectBufSize(-1),
		nats.IgnoreDiscoveredServers(), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(remotePing), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() { // by us: nothing was lost
				r.log.Warn("lost the log's server", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { r.log.Warn("connection to the log", "error", err) }),
	}
	return nats.Connect(url, append(o, extra...)...)
}

// reconnected asks for a new proof.
func (r *Remote) reconnected(nc *nats.Conn) {
	r.log.Info("reached the log's server again", "server", nc.ConnectedServerName())
	r.askAgain()
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

// Close ends the connections.
func (r *Remote) Close() {
	r.stop()
	r.wg.Wait()
	r.asks.close()
	r.callers.Close()
	r.nc.Close()
}
