package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// The admin socket of a node of several that waited for the others was not there: memctl said
// that no memnode runs, and to start it.
func TestWaitingNodeAnswersAtItsAdminSocket(t *testing.T) {
	cfg := trioOf(t, nil).cfgs[0]
	sockets, err := os.MkdirTemp("", "mneme") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	cfg.AdminSocket = filepath.Join(sockets, "s")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waits := make(chan struct{})
	cfg.Logger = slog.New(slog.NewTextHandler(saidOnce{"waiting for the cluster", func(string) {
		select {
		case <-waits:
		default:
			close(waits)
		}
	}}, nil))
	ended := make(chan error, 1)
	go func() {
		n, err := Open(ctx, cfg)
		if err == nil {
			err = errors.Join(errors.New("it waited for nobody"), n.Close(context.Background()))
		}
		ended <- err
	}()
	select {
	case <-waits:
	case err := <-ended:
		t.Fatal(err)
	}
	c, err := client.New("unix://"+cfg.AdminSocket, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Status(t.Context())
	if e := memory.AsError(err); e.Code != memory.CodeUnavailable || !strings.Contains(e.Error(), waitsForNodes+": have 1 of 3 nodes") || !strings.Contains(e.Hint, "the node's log says") {
		t.Errorf("%v; hint: %s", err, e.Hint)
	}
	remote, err := client.New(cfg.HTTPAddr, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	if _, err := remote.Status(t.Context()); !strings.Contains(fmt.Sprint(err), waitsForNodes) || strings.Contains(fmt.Sprint(err), "127.0.0.1") {
		t.Errorf("anybody hears %v", err)
	}
	cancel()
	if err := <-ended; !strings.Contains(err.Error(), "found no cluster") {
		t.Error(err)
	}
	if _, err := os.Stat(cfg.AdminSocket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// A node of several whose keyring is damaged was told to run memctl doctor --data-dir, which
// refuses the directory of a node of a cluster.
func TestDamagedNodeOfSeveralIsReplaced(t *testing.T) {
	tr := newTrio(t)
	shut(t, tr.nodes[1])
	tr.nodes[1] = nil
	for _, name := range []string{"keyring.v1", "keyring.v1.copy"} {
		edit(t, filepath.Join(tr.cfgs[1].DataDir, "keys", name), func(b []byte) { b[len(b)/2] ^= 1 })
	}
	e := fails(t, tr.cfgs[1], StartDamaged)
	if !strings.Contains(e.Hint, "memctl cluster remove n2") || strings.Contains(e.Hint, "doctor --data-dir") {
		t.Errorf("%s; hint: %s", e.Message, e.Hint)
	}
}
