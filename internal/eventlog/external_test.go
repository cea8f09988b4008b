package eventlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/natstest"
	"mneme/internal/events"
)

// overThree opens a log of three copies on three external servers, connected to the first.
func overThree(t *testing.T, s *natstest.Servers, opt eventlog.RemoteOptions) (*eventlog.Remote, *eventlog.JetStream) {
	t.Helper()
	opt.Logger = logTo(t)
	var r *eventlog.Remote
	wait(t, "the servers", func() (ok bool) { // one that is asked for the first time may not know the others yet
		var err error
		r, err = eventlog.OpenExternal(testContext(t), opt)
		return err == nil
	})
	t.Cleanup(r.Close)
	st, err := eventlog.OpenStream(testContext(t), r.Conn(), eventlog.StreamConfig{ClusterID: "c", Replicas: len(s.Names), AckTimeout: time.Second,
		Ref: events.StreamRef{Epoch: 1, Identity: "first"}, Guard: r.Vouch})
	must(t, err)
	return r, st
}

// TestServerRestartsWithoutSyncingBesideTheOneConnectedTo: the proof was that of the
// connection, so that a server of the cluster that came back without sync_interval:
// always took part in acknowledgements as long as the connection to another one lived.
func TestServerRestartsWithoutSyncingBesideTheOneConnectedTo(t *testing.T) {
	for name, asked := range map[string]func(s *natstest.Servers) eventlog.RemoteOptions{
		"system account": func(s *natstest.Servers) eventlog.RemoteOptions {
			return eventlog.RemoteOptions{URL: s.URL(0), SystemURL: s.SystemURL()}
		},
		"monitoring": func(s *natstest.Servers) eventlog.RemoteOptions {
			return eventlog.RemoteOptions{URL: s.URL(0), MonitorURLs: s.Monitors}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t, 3)
			r, st := overThree(t, s, asked(s))
			appendSure(t, st, frame(1), 0)
			s.Stop(2)
			seq := uint64(1)
			for ; seq < 4; seq++ { // two of three go on
				appendSure(t, st, frame(seq+1), seq)
			}
			reconnects := r.Conn().Stats().Reconnects
			s.Up(t, 2, "sync_interval: always", "sync_interval: 1m")
			wait(t, "the refusal", func() bool { return errors.Is(r.Proven(), eventlog.ErrLazySync) })
			err := st.Append(testContext(t), frame(seq+1), seq)
			if !errors.Is(err, eventlog.ErrRefused) || !errors.Is(err, eventlog.ErrLazySync) || !strings.Contains(err.Error(), "log-3") {
				t.Errorf("append beside a server that does not sync: %v", err)
			}
			if _, err := st.Info(testContext(t)); !errors.Is(err, eventlog.ErrNoSyncProof) {
				t.Errorf("what is found there counts as stored: %v", err)
			}
			if r.Conn().Stats().Reconnects != reconnects {
				t.Error("the connection was made anew: the test shows nothing")
			}
			s.Stop(2)
			s.Up(t, 2, "", "")
			wait(t, "the proof", r.SyncAlways)
			for ; seq < 8; seq++ {
				appendSure(t, st, frame(seq+1), seq)
			}
			checkLog(t, st, seq)
		})
	}
}

// A server with a copy whose monitoring address was not named proves nothing.
func TestEveryServerWithACopyIsToBeAsked(t *testing.T) {
	s := natstest.Start(t, 3)
	opt := eventlog.RemoteOptions{URL: s.URL(), MonitorURLs: s.Monitors[:2], Logger: logTo(t)}
	r, err := eventlog.OpenExternal(testContext(t), opt)
	must(t, err)
	defer r.Close()
	st, err := eventlog.OpenStream(testContext(t), r.Conn(), eventlog.StreamConfig{Replicas: 3, Guard: r.Vouch})
	must(t, err)
	for seq, ctx := uint64(0), testContext(t); ; {
		err := st.Append(ctx, frame(seq+1), seq)
		switch {
		case ctx.Err() != nil:
			t.Fatalf("never refused: %v", err)
		case errors.Is(err, eventlog.ErrNoSyncProof) && errors.Is(err, eventlog.ErrRefused):
			return
		case err == nil:
			seq++ // the third one was away for a moment, and the others, which sync, have it
		default:
			// It came back while the frame was under way, say: the outcome is unknown.
			if m, gerr := st.Get(ctx, seq+1); gerr == nil && string(m.Data) == string(frame(seq+1)) {
				seq++
			}
		}
	}
}

// The node goes on at another of the servers that it was told of.
func TestConnectionGoesOnAtAnotherServer(t *testing.T) {
	s := natstest.Start(t, 3)
	r, st := overThree(t, s, eventlog.RemoteOptions{URL: s.URL(), MonitorURLs: s.Monitors})
	appendSure(t, st, frame(1), 0)
	first := r.Conn().ConnectedServerName()
	s.Stop(s.Number(first))
	for seq := uint64(1); seq < 10; seq++ {
		appendSure(t, st, frame(seq+1), seq)
	}
	if now := r.Conn().ConnectedServerName(); now == first {
		t.Errorf("still connected to %s", now)
	}
	checkLog(t, st, 10)
}

// Credentials and certificates in files: what cannot be used says which file, and never
// what stands in it.
func TestAccessByFiles(t *testing.T) {
	s := natstest.Start(t, 1)
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	must(t, os.WriteFile(bad, []byte("hush hush"), 0o600))
	missing := filepath.Join(dir, "missing")
	for name, a := range map[string]eventlog.Access{
		"no creds": {Creds: missing}, "neither a JWT nor a password": {Creds: bad}, "no nkey": {NKey: missing}, "no nkey in it": {NKey: bad}, "no authority": {CA: bad},
		"missing authority": {CA: missing}, "no certificate": {Cert: bad, Key: bad}, "no key": {Cert: bad},
	} {
		_, err := eventlog.OpenExternal(testContext(t), eventlog.RemoteOptions{URL: s.URL(), MonitorURLs: s.Monitors, Access: a, Logger: logTo(t)})
		if !errors.Is(err, eventlog.ErrAccess) || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := eventlog.OpenExternal(testContext(t), eventlog.RemoteOptions{URL: strings.Replace(s.URL(), natstest.NodePassword, "hush", 1), MonitorURLs: s.Monitors, Logger: logTo(t)})
	if !errors.Is(err, eventlog.ErrCredentials) || !errors.Is(err, eventlog.ErrUnreachable) || strings.Contains(err.Error(), "hush") {
		t.Errorf("wrong password: %v", err)
	}
}

// What begins as nsc writes it is no line of user and password.
func TestCredentialsOfNSC(t *testing.T) {
	s := natstest.Start(t, 1)
	file := filepath.Join(t.TempDir(), "node.creds")
	must(t, os.WriteFile(file, []byte("-----BEGIN NATS USER JWT-----\nhush:hush\n------END NATS USER JWT------\n"), 0o600))
	_, err := eventlog.OpenExternal(testContext(t), eventlog.RemoteOptions{URL: s.URL(), Access: eventlog.Access{Creds: file}, MonitorURLs: s.Monitors, Logger: logTo(t)})
	if err == nil || errors.Is(err, eventlog.ErrAccess) || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "nkey") {
		t.Errorf("a JWT without its key: %v", err)
	}
}

// A file with user and password is read again at each connection, so that a password that
// was changed on both sides ends nothing.
func TestPasswordInAFile(t *testing.T) {
	s := natstest.Start(t, 1)
	_, bare, _ := strings.Cut(s.URL(), "@")
	file := filepath.Join(t.TempDir(), "node.creds")
	open := func(text string) (*eventlog.Remote, error) {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return eventlog.OpenExternal(testContext(t), eventlog.RemoteOptions{URL: "nats://" + bare, MonitorURLs: s.Monitors, Access: eventlog.Access{Creds: file}, Logger: logTo(t)})
	}
	if _, err := open("mneme-node:hush\n"); !errors.Is(err, eventlog.ErrCredentials) || strings.Contains(err.Error(), "hush") {
		t.Errorf("another password: %v", err)
	}
	r, err := open("mneme-node:" + natstest.NodePassword + "\n")
	must(t, err)
	defer r.Close()
	before := r.Conn().Stats().Reconnects
	s.Stop(0)
	must(t, os.WriteFile(file, []byte("mneme-node:another:one"), 0o600))
	s.Up(t, 0, natstest.NodePassword, "another:one")
	wait(t, "the connection with the other password", func() bool { return r.Conn().IsConnected() && r.Conn().Stats().Reconnects > before })
	wait(t, "the proof", r.SyncAlways)
}

// The printed configuration with a certificate lets in nobody in clear.
func TestServersSpeakTLS(t *testing.T) {
	s, authority := natstest.StartTLS(t)
	for _, c := range []struct {
		access eventlog.Access
		ok     bool
	}{{eventlog.Access{}, false}, {eventlog.Access{CA: authority}, true}} {
		r, err := eventlog.OpenExternal(testContext(t), eventlog.RemoteOptions{URL: s.URL(), MonitorURLs: s.Monitors, Access: c.access, Logger: logTo(t)})
		if (err == nil) != c.ok {
			t.Errorf("with the authority %q: %v", c.access.CA, err)
		}
		if err == nil {
			r.Close()
		}
	}
}
