package node

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// saidOnce calls a function once what is written says something.
type saidOnce struct {
	what string
	then func(line string)
}

func (s saidOnce) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.what) {
		s.then(string(p))
	}
	return len(p), nil
}

// A node that starts with a certificate that has ended waits for the others. It said what
// they think of the certificate, and not when it ended, which it knows.
func TestNodeSaysWhenItsCertificateEnded(t *testing.T) {
	cfg := trioOf(t, nil).cfgs[0]
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	said := make(chan string, 1)
	cfg.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	cfg.Logger = slog.New(slog.NewTextHandler(saidOnce{"certificate has ended", func(line string) {
		select {
		case said <- line:
		default:
		}
		cancel()
	}}, nil))
	if n, err := Open(ctx, cfg); err == nil {
		shut(t, n)
		t.Fatal("it did not wait for the others")
	}
	select {
	case line := <-said:
		if !strings.Contains(line, "n1.crt") || !strings.Contains(line, "ended=20") {
			t.Error(line)
		}
	default:
		t.Error("it did not say so")
	}
}
