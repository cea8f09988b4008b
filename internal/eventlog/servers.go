package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	removeSubject = "$JS.API.SERVER.REMOVE"
	removeAttempt = time.Second
	removeAgain   = 100 * time.Millisecond
	// errNotMember is nats-server's code for a server that is not among the cluster's.
	errNotMember = 10044
)

// RemoveServer takes a server out of the cluster, for ever: the streams with a copy
// there get it at another server, as soon as there is one without. It returns once a
// majority of the others has agreed, also if it was removed before, and asks again
// until ctx ends. A server that is removed while it runs stops serving streams.
func (s *Server) RemoveServer(ctx context.Context, name string) error {
	nc, err := s.connect(ctx, systemUser)
	if err != nil {
		return err
	}
	defer nc.Close()
	// By its id: a leader that has not seen the server since its own start does not
	// know the name.
	ask, err := json.Marshal(struct {
		Name string `json:"peer"`
		ID   string `json:"peer_id"`
	}{name, serverID(name)})
	if err != nil {
		return err
	}
	for {
		removed, err := removeServer(ctx, nc, ask)
		if removed {
			return nil
		}
		if perr := pause(ctx, removeAgain); perr != nil {
			return fmt.Errorf("remove the log server %s: %w: %w", name, perr, err)
		}
	}
}

func removeServer(ctx context.Context, nc *nats.Conn, ask []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, removeAttempt)
	defer cancel()
	msg, err := nc.RequestWithContext(ctx, removeSubject, ask)
	if err != nil {
		return false, err // while nobody leads, nobody answers
	}
	var said struct {
		Success bool `json:"success"`
		Error   *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(msg.Data, &said); err != nil {
		return false, err
	}
	switch {
	case said.Error == nil:
		return said.Success, errors.New("the servers did not agree")
	case said.Error.Code == errNotMember:
		return true, nil
	}
	return false, errors.New(said.Error.Description)
}

// serverID is how nats-server calls a server among those that agree: a hash of its
// name (events.go, getHash). TestAServerThatIsGone notices when that changes.
func serverID(name string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum := sha256.Sum256([]byte(name))
	id := sum[:8]
	for i := range id {
		id[i] = digits[int(id[i])%len(digits)]
	}
	return string(id)
}

// Holds says what this server's own copy of a stream holds, 0 without one, and
// whether the copy has what was agreed on, as far as the server knows: one that
// lags may not know yet, so that last is to be compared with the leader's, too.
func (s *Server) Holds(stream string) (last uint64, current bool) {
	z, err := s.ns.Jsz(&server.JSzOptions{Account: nodeAccount, Streams: true})
	if err != nil {
		return 0, false
	}
	for _, a := range z.AccountDetails {
		for _, st := range a.Streams {
			if st.Name == stream {
				return st.State.LastSeq, s.ns.JetStreamIsStreamCurrent(nodeAccount, stream)
			}
		}
	}
	return 0, false
}
