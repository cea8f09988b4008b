package hangup_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/hangup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server ended five seconds late whenever a client had connected and asked nothing: a
// node took 5 to 11 seconds to end. A request that is under way is still answered, and so
// is one whose connection is new.
func TestConnectionWithoutARequestHeldUpTheEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan struct{}), make(chan struct{})
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	})}
	accepted := make(chan struct{}, 2)
	var f hangup.Fresh
	f.Watch(s)
	track := s.ConnState
	s.ConnState = func(c net.Conn, state http.ConnState) {
		track(c, state)
		if state == http.StateNew {
			accepted <- struct{}{}
		}
	}
	served := make(chan error)
	go func() { served <- s.Serve(listener) }()

	silent, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	<-accepted
	slow := make(chan error)
	go func() {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + listener.Addr().String())
		if err == nil {
			err = resp.Body.Close()
		}
		slow <- err
	}()
	<-asked
	began, ended := time.Now(), make(chan error)
	go func() { ended <- f.Shutdown(t.Context(), s) }()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection on which nothing was asked: %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("ended while a request was under way: %v", err)
	default:
	}
	close(answer)
	if err := errors.Join(<-slow, <-ended); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 4*time.Second { // net/http alone takes five
		t.Errorf("the end took %v", took)
	}
}

// What ends by its deadline says so, as http.Server does.
func TestEndHasADeadline(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan struct{}), make(chan struct{})
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	})}
	var f hangup.Fresh
	f.Watch(s)
	served := make(chan error)
	go func() { served <- s.Serve(listener) }()
	slow := make(chan error)
	go func() {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + listener.Addr().String())
		if err == nil {
			err = resp.Body.Close()
		}
		slow <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Shutdown(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	close(answer)
	if err := <-slow; err != nil {
		t.Error(err)
	}
	<-served
}
