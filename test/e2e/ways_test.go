package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mneme/client"
	"mneme/memory"
)

// Whatever way a memory comes, the answer means that it can be found.
func TestEveryWayOfPublishingIsSearchableAtOnce(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	nc := d.bus()
	const subject = "mem.in.default.agent-7.capture"
	old, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	recent, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	words := func(way string) string { return "deploys by way of " + way + " happen on Tuesdays" }
	for way, publish := range map[string]func(text string) error{
		"request": func(text string) error {
			_, err := nc.Request(subject, []byte(text), patience)
			return err
		},
		"legacyjetstream": func(text string) error {
			ack, err := old.Publish(subject, []byte(text))
			if err == nil && (ack.Stream != "mem" || ack.Sequence == 0 || ack.Duplicate) {
				err = fmt.Errorf("ack %+v", ack)
			}
			return err
		},
		"jetstream": func(text string) error {
			ack, err := recent.Publish(t.Context(), subject, []byte(text), jetstream.WithMsgID("js-1"))
			if err == nil && (ack.Stream != "mem" || ack.Sequence == 0 || ack.Duplicate) {
				err = fmt.Errorf("ack %+v", ack)
			}
			if err == nil {
				if ack, err = recent.Publish(t.Context(), subject, []byte(text), jetstream.WithMsgID("js-1")); err == nil && !ack.Duplicate {
					err = fmt.Errorf("a repeated publish is no duplicate: %+v", ack)
				}
			}
			return err
		},
		"json": func(text string) error {
			_, err := nc.Request(subject, fmt.Appendf(nil, `{"text":%q,"tags":["ops"]}`, text), patience)
			return err
		},
		"cloudevent": func(text string) error {
			_, err := nc.Request(subject, fmt.Appendf(nil, `{"specversion":"1.0","id":"ce1","source":"/elsewhere","type":"io.mneme.memory.captured.v1","data":{"text":%q}}`, text), patience)
			return err
		},
		"binarycloudevent": func(text string) error {
			_, err := nc.RequestMsg(&nats.Msg{Subject: subject, Data: []byte(text), Header: nats.Header{"ce-specversion": {"1.0"}, "ce-id": {"ce2"},
				"ce-source": {"/elsewhere"}, "ce-type": {"io.mneme.memory.captured.v1"}, "content-type": {"text/plain"}}}, patience)
			return err
		},
		"rest": func(text string) error {
			_, err := d.client.Capture(t.Context(), "default", memory.Capture{Agent: "agent-7", Text: text}, client.CaptureOptions{})
			return err
		},
		"command": func(text string) error {
			if e := d.memctl("capture", "-n", "default", text); e.code != 0 {
				return fmt.Errorf("%s", e.err)
			}
			return nil
		},
	} {
		t.Run(way, func(t *testing.T) {
			if err := publish(words(way)); err != nil {
				t.Fatal(err)
			}
			if got := d.find("default", way+" deploys"); len(got) == 0 || got[0] != words(way) {
				t.Errorf("found %q", got)
			}
			m, err := nc.Request("mem.api.default.search", fmt.Appendf(nil, `{"query":%q}`, way+" deploys"), patience)
			var r memory.SearchResponse
			if err != nil || json.Unmarshal(m.Data, &r) != nil || len(r.Results) == 0 || r.Results[0].Text != words(way) {
				t.Errorf("by NATS: %s, %v", m.Data, err)
			}
		})
	}
	t.Run("publish", func(t *testing.T) { // best effort: no answer to wait for
		if err := nc.Publish(subject, []byte(words("publish"))); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the published memory", func() bool {
			got := d.find("default", "publish deploys")
			return len(got) > 0 && got[0] == words("publish")
		})
	})
}

func TestAcceptedIsAppliedBySayingSo(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	r, err := d.client.Capture(t.Context(), "default", memory.Capture{Agent: "tester", Text: "accepted first"}, client.CaptureOptions{Wait: memory.WaitAccepted})
	if err != nil || r.Results[0].RecordID == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	found, err := d.client.Search(t.Context(), "default", memory.SearchRequest{Query: "accepted", AtLeast: r.Position})
	if err != nil || len(found.Results) != 1 || found.Results[0].ID != r.Results[0].RecordID {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestForeignClientCannotTouchTheLog(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	d.capture("default", "what is in the log")
	before := d.truth()
	blocks := tree(t, d.dir)
	denied := make(chan error, 64)
	nc := d.bus(nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	wait := func(what string) {
		t.Helper()
		select {
		case err := <-denied:
			if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(patience):
			t.Errorf("%s: no permission error", what)
		}
	}
	for _, subject := range []string{"mem.log.0", "mem.log.x", "$JS.API.STREAM.PURGE.mneme-0", "$JS.API.STREAM.DELETE.mneme-0",
		"$JS.API.STREAM.MSG.DELETE.mneme-0", "$JS.API.STREAM.CREATE.other", "$JS.API.STREAM.INFO.mneme-0", "$JS.API.STREAM.UPDATE.mneme-0",
		"$SYS.REQ.SERVER.PING", "mem.feed.default.team.memory.captured", "elsewhere"} {
		if err := nc.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		wait("publish to " + subject)
	}
	// Feeds and inboxes are open: whoever may connect may act as any agent.
	for _, subject := range []string{"mem.log.>", "mem.>", ">", "mem.in.>", "$JS.>", "$SYS.>", "mem.api.>"} {
		sub, err := nc.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		wait("subscribe to " + subject)
		_ = sub.Unsubscribe() // a denied one is gone already
	}
	if after := d.truth(); after != before {
		t.Error("the state was changed")
	}
	if after := tree(t, d.dir); after != blocks {
		t.Error("the log was changed")
	}
	var verify memory.VerifyReport
	mustJSON(t, d.must("log", "verify", "--json"), &verify)
	if !verify.Shards[0].OK {
		t.Errorf("%+v", verify)
	}
}

// sse reads n server-sent events: their ids and data.
func sse(t *testing.T, d *daemon, path string, n int, header ...string) (ids []string, events []memory.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", d.http+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatalf("status %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	id := ""
	for len(events) < n && lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "id:"); ok {
			id = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			var ev memory.Event
			mustJSON(t, v, &ev)
			if ev.SpecVersion == "" {
				continue
			}
			ids, events = append(ids, id), append(events, ev)
		}
	}
	if len(events) < n {
		t.Fatalf("the stream ended after %d of %d events: %v", len(events), n, lines.Err())
	}
	return ids, events
}

func TestEventStreamResumesAcrossARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := start(t, dir)
	const path = "/v1/namespaces/default/events"
	first := d.capture("default", "one")
	var want []string
	for i := range 4 {
		want = append(want, d.capture("default", fmt.Sprint("after one ", i)).RecordID)
	}
	ids, events := sse(t, d, path+"?from="+first.Position, 2)
	d.kill()
	d = start(t, dir)
	for i := range 2 {
		want = append(want, d.capture("default", fmt.Sprint("after the restart ", i)).RecordID)
	}
	moreIDs, more := sse(t, d, path, 4, "Last-Event-ID", ids[1])
	var got []string
	for i, ev := range append(events, more...) {
		parts := strings.Split(ev.Subject, "/")
		got = append(got, parts[len(parts)-1])
		if id := append(ids, moreIDs...)[i]; id != ev.Position {
			t.Errorf("event %d has id %s and position %s", i, id, ev.Position)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("events of %v, want %v", got, want)
	}
}

func TestFeedsAnnounceWhatWasApplied(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	nc := d.bus()
	team, err := nc.SubscribeSync("mem.feed.default.team.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	want := d.capture("default", "news for the team")
	m, err := team.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	var ev memory.Event
	mustJSON(t, string(m.Data), &ev)
	if ev.Type != "io.mneme.memory.captured.v1" || ev.Position != want.Position || !strings.Contains(string(ev.Data), "news for the team") {
		t.Errorf("%s: %s", m.Subject, m.Data)
	}
}
