package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mneme/internal/events"
)

// leads plays the leader of a stream of three copies that holds five messages. It is asked
// for messages, and about the stream, with how often it was asked for a message before.
func leads(t *testing.T, message, info func(asked int) string) *reader {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Shutdown)
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	j, err := newStream(nc, StreamConfig{Ref: events.StreamRef{Identity: "c"}, ClusterID: "c", Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	answer := func(subject string, f func(m *nats.Msg) string) {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(f(m))) }); err != nil {
			t.Fatal(err)
		}
	}
	answer("$JS.API.STREAM.MSG.GET.*", func(m *nats.Msg) string {
		var q struct{ Seq uint64 }
		_ = json.Unmarshal(m.Data, &q)
		if a := message(int(asked.Add(1)) - 1); a != "" {
			return a
		}
		return `{"message":{"seq":` + strconv.FormatUint(q.Seq, 10) + `,"data":"eA==","time":"2026-11-23T09:00:00Z"}}`
	})
	answer("$JS.API.STREAM.INFO.*", func(*nats.Msg) string {
		if leader := info(int(asked.Load())); strings.HasPrefix(leader, "{") {
			return leader
		}
		return `{"config":{"name":"` + j.name + `","num_replicas":3,"metadata":{"mneme-stream":"c"}},"state":{"first_seq":1,"last_seq":5,"messages":5},"cluster":{"leader":"` + info(int(asked.Load())) + `"}}`
	})
	r, err := j.newReader(3, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

const (
	nobodyLeads = `{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`
	notFound    = `{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`
	noMessage   = `{"error":{"code":404,"err_code":10037,"description":"no message found"}}`
)

// The time in which nobody led the log counted for the next leader: a single answer of it,
// that it has not the message, made a gap, over which the slow scrub stops writes. So did
// answers of several leaders, one each.
func TestAnswerAfterAnElectionWasAGap(t *testing.T) {
	var began time.Time
	said := false
	for name, tc := range map[string]struct {
		message, info func(asked int) string
		gap           bool
	}{
		"one answer after an election": {func(int) string {
			switch {
			case time.Since(began) < 300*time.Millisecond:
				return nobodyLeads
			case said:
				return ""
			}
			said = true
			return noMessage
		}, func(int) string { return "n2" }, false},
		"leaders that change": {func(asked int) string {
			if asked < 10 {
				return noMessage
			}
			return ""
		}, func(asked int) string { return fmt.Sprint("n", asked) }, false},
		"nobody leads in between": {func(asked int) string {
			switch {
			case asked > 9:
				return ""
			case asked%2 == 0:
				return nobodyLeads
			}
			return noMessage
		}, func(int) string { return "n2" }, false},
		"one leader": {func(int) string { return noMessage }, func(int) string { return "n2" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			began = time.Now()
			r := leads(t, tc.message, tc.info)
			r.passing = 100 * time.Millisecond
			got := 0
			err := r.run(t.Context(), func(Message) error { got++; return nil })
			var gap *GapError
			if errors.As(err, &gap) != tc.gap || (err == nil) == tc.gap || (got == 1) == tc.gap {
				t.Errorf("%d messages, %v", got, err)
			}
			if tc.gap && time.Since(began) < r.passing {
				t.Errorf("a gap after %s", time.Since(began))
			}
		})
	}
}

// A stream that is not found was believed at once, and writes stopped over a log that is
// whole: the leader of all streams says so too that has not applied all that it has, or
// leads no more.
func TestStreamThatWasNotFoundForAMoment(t *testing.T) {
	said := 0
	r := leads(t, func(int) string { return "" }, func(int) string {
		if said++; said < 6 {
			return notFound
		}
		return "n2"
	})
	looks := 0
	err := Settled(t.Context(), r.j, func() error {
		looks++
		return Check(t.Context(), r.j, Expect{Identity: "c"})
	})
	if err != nil || looks < 2 {
		t.Errorf("%d looks: %v", looks, err)
	}
	if info, err := r.j.Info(t.Context()); err != nil || info.Identity != "c" {
		t.Errorf("%+v, %v", info, err)
	}
}

// stands is a stream of which only Info is asked.
type stands struct {
	Stream
	info func() (Info, error)
}

func (s stands) Info(context.Context) (Info, error) { return s.info() }

func TestSettledWaitsForOneLeader(t *testing.T) {
	wrong := diverged(KindSuffixLost, 4, "the log ends at 3")
	read := diverged(KindGap, 4, "nothing there")
	read.asked = true
	for name, tc := range map[string]struct {
		leader  func(look int) string
		passing time.Duration
		check   func(look int) error
		looks   int // at most; 0 = any number
		want    error
	}{
		"it passes":             {func(int) string { return "n2" }, time.Hour, func(look int) error { return after(look, 3, wrong) }, 3, nil},
		"it stays":              {func(int) string { return "n2" }, 150 * time.Millisecond, func(int) error { return wrong }, 0, wrong},
		"leaders change":        {func(look int) string { return fmt.Sprint("n", look) }, time.Nanosecond, func(look int) error { return after(look, 4, wrong) }, 4, nil},
		"one server":            {func(int) string { return "" }, 0, func(int) error { return wrong }, 1, wrong},
		"reading has waited":    {func(int) string { return "n2" }, time.Hour, func(int) error { return read }, 1, read},
		"it cannot be read now": {func(int) string { return "n2" }, time.Hour, func(int) error { return ErrNoLeader }, 1, ErrNoLeader},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			s := stands{info: func() (Info, error) { return Info{Leader: tc.leader(looks), Passing: tc.passing}, nil }}
			err := Settled(t.Context(), s, func() error { looks++; return tc.check(looks) })
			if !errors.Is(err, tc.want) || tc.looks > 0 && looks != tc.looks {
				t.Errorf("%d looks: %v", looks, err)
			}
		})
	}
	// Who does not wait for the outcome has not found the log damaged.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := stands{info: func() (Info, error) { return Info{Leader: "n2", Passing: time.Hour}, nil }}
	if err := Settled(ctx, s, func() error { return wrong }); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller is gone: %v", err)
	}
}

func TestSettledInfoIsOfOneLeader(t *testing.T) {
	looks := 0
	s := stands{info: func() (Info, error) {
		if looks++; looks < 4 {
			return Info{Leader: "n1", Last: 3, Passing: time.Hour}, nil
		}
		return Info{Leader: "n2", Last: 5, Passing: 150 * time.Millisecond}, nil
	}}
	if info, err := SettledInfo(t.Context(), s); err != nil || info.Last != 5 || looks < 6 {
		t.Errorf("%d looks: %+v, %v", looks, info, err)
	}
	looks = 0
	one := stands{info: func() (Info, error) { looks++; return Info{Last: 3}, nil }}
	if info, err := SettledInfo(t.Context(), one); err != nil || info.Last != 3 || looks != 1 {
		t.Errorf("of one server: %d looks: %+v, %v", looks, info, err)
	}
}

func after(look, last int, err error) error {
	if look < last {
		return err
	}
	return nil
}

// A process that stood still has not asked for that long.
func TestContradictionCountsPausesAsASecond(t *testing.T) {
	var c contradiction
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		leader string
		later  time.Duration
		want   time.Duration
	}{{"n1", time.Hour, 0}, {"n1", time.Minute, time.Second}, {"n1", 100 * time.Millisecond, 1100 * time.Millisecond}, {"n2", time.Second, 0}, {"n1", time.Second, 0}} {
		if at = at.Add(step.later); c.by(step.leader, at) != step.want {
			t.Errorf("%+v: %v", step, c.told)
		}
	}
}
