package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/client"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// hooked is a user's machine on which hosts of agents call hooks.
type hooked struct {
	t    *testing.T
	home string
	addr string
}

// hook is one call. It always ends well.
func (h *hooked) hook(agent, event string, payload map[string]any) string {
	h.t.Helper()
	b, err := json.Marshal(payload)
	if err != nil {
		h.t.Fatal(err)
	}
	e := memctl(h.t, string(b), h.env(), "hook", "--agent", agent, "--event", event)
	if e.code != 0 {
		h.t.Errorf("%s %s ended with %d: %s", agent, event, e.code, e.err)
	}
	return e.out
}

func (h *hooked) env() []string {
	return []string{"XDG_CONFIG_HOME=" + h.home, "HOME=" + h.home, "MNEME_ADDR=" + h.addr, "MNEME_NAMESPACE=default"}
}

// TestHooksRememberAcrossConversations: one conversation stores, a second one, with another
// agent, recalls, a third gets nothing because nothing fits.
func TestHooksRememberAcrossConversations(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	h := &hooked{t: t, home: t.TempDir(), addr: d.http}
	if out := h.hook("claude-code", "UserPromptSubmit", map[string]any{"session_id": "one", "cwd": "/home/u/shop", "prompt": "Remember that deploys happen on Tuesdays after the stand-up. The deploy password is hunter22pass."}); out != "" {
		t.Errorf("the first prompt is answered %q", out)
	}
	h.hook("claude-code", "Stop", map[string]any{"session_id": "one", "last_assistant_message": "We decided to use Postgres for the billing service."})
	got := d.everything("default")
	if len(got) != 2 || strings.Contains(got[0].Text, "hunter22") || !strings.Contains(got[0].Text, "[redacted:password]") || got[0].Origin != memory.OriginHook || got[0].Agent != "claude-code" {
		t.Fatalf("stored %s", toJSON(t, got))
	}

	if on := memctl(t, "", h.env(), "namespace", "set", "default", "audit.injections=on"); on.code != 0 {
		t.Fatal(on)
	}
	out := h.hook("gemini-cli", "BeforeAgent", map[string]any{"session_id": "two", "prompt": "On which day do we deploy?"})
	var answer struct {
		Hook struct{ HookEventName, AdditionalContext string } `json:"hookSpecificOutput"`
	}
	mustJSON(t, out, &answer)
	if answer.Hook.HookEventName != "BeforeAgent" || !strings.HasPrefix(answer.Hook.AdditionalContext, "<relevant-memories>") || !strings.Contains(answer.Hook.AdditionalContext, "Tuesdays") {
		t.Errorf("the second conversation gets %s", out)
	}
	if out := h.hook("kiro", "userPromptSubmit", map[string]any{"cwd": "/home/u/shop", "prompt": "what colour has the moon over Lisbon"}); out != "" {
		t.Errorf("the third conversation gets %q", out)
	}

	// Copilot takes nothing later: it begins with what was decided and what was to be remembered.
	if out := h.hook("copilot", "sessionStart", map[string]any{"sessionId": "four", "cwd": "/home/u/moon", "source": "new"}); !strings.Contains(out, "Tuesdays") || !strings.Contains(out, "Postgres") {
		t.Errorf("Copilot begins with %q", out)
	}

	shown := memctl(t, "", h.env(), "recalls", "--json")
	var recalls struct {
		Recalls []struct {
			Agent, Outcome, Query string
			Tokens                int
			Hits                  []struct {
				Score  float64
				Tokens int
			}
		}
	}
	mustJSON(t, shown.out, &recalls)
	var outcomes []string
	for _, r := range recalls.Recalls {
		outcomes = append(outcomes, r.Agent+" "+r.Outcome)
	}
	if want := []string{"copilot injected", "kiro nothing found", "gemini-cli injected", "claude-code nothing found"}; !slices.Equal(outcomes, want) {
		t.Fatalf("recalls %q", outcomes)
	}
	var audited memory.AuditedReadPage
	mustJSON(t, memctl(t, "", h.env(), "audit", "reads", "--json").out, &audited)
	var readers []string
	for _, r := range audited.Reads {
		readers = append(readers, fmt.Sprint(r.Agent, " ", len(r.Given)))
	}
	if want := []string{"copilot 1", "copilot 1", "kiro 0", fmt.Sprint("gemini-cli ", len(recalls.Recalls[2].Hits))}; !slices.Equal(readers, want) {
		t.Errorf("audited are %q, want %q", readers, want)
	}
	if r := recalls.Recalls[2]; r.Tokens == 0 || r.Tokens > 600 || len(r.Hits) == 0 || r.Hits[0].Score <= 0 || r.Hits[0].Tokens == 0 {
		t.Errorf("%+v", r)
	}
}

// TestHooksWhileTheNodeIsKilled: hooks of several conversations run at once while the node is
// killed and comes back. Whatever was worth keeping is stored, once, and of each conversation
// in order.
func TestHooksWhileTheNodeIsKilled(t *testing.T) {
	t.Parallel()
	const conversations, prompts = 3, 6
	dir := t.TempDir()
	addr := testaddr.Reserve(t, 1)[0] // by which it is known again
	d := start(t, dir, "--http-addr", addr)
	home := t.TempDir()
	text := func(c, i int) string { return fmt.Sprintf("Remember that rule %d of team %d holds.", i, c) }
	say := func(addr string, from, to int) {
		var wg sync.WaitGroup
		for c := range conversations {
			wg.Go(func() {
				h := &hooked{t: t, home: home, addr: addr}
				for i := from; i < to; i++ {
					h.hook("claude-code", "UserPromptSubmit", map[string]any{"session_id": fmt.Sprint(c), "prompt": text(c, i)})
				}
			})
		}
		wg.Wait()
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for len(d.nowStored()) < 2 {
			select {
			case <-d.exited:
				return
			default:
			}
		}
		d.kill()
	}()
	say(d.http, 0, prompts/2)
	<-gone
	say(d.http, prompts/2, prompts-1) // nobody is there

	d = start(t, dir, "--http-addr", addr)
	say(d.http, prompts-1, prompts)
	h := &hooked{t: t, home: home, addr: d.http}
	if e := memctl(t, "", h.env(), "hook", "drain"); e.code != 0 {
		t.Fatalf("drain: %s", e.err)
	}
	order := map[string][]string{}
	for _, r := range d.everything("default") {
		order[r.Conversation] = append(order[r.Conversation], r.Text)
		if strings.Contains(string(r.Metadata), "repeats") {
			t.Errorf("a resend counts as a repetition: %s", r.Metadata)
		}
	}
	for c := range conversations {
		var want []string
		for i := range prompts {
			want = append(want, text(c, i))
		}
		if got := order[fmt.Sprint("claude-code/", c)]; !slices.Equal(got, want) {
			t.Errorf("conversation %d: %q", c, got)
		}
	}
}

// nowStored is how many memories the node has, none where it does not answer.
func (d *daemon) nowStored() []memory.Record {
	list, err := d.client.List(d.t.Context(), "default", client.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Records
}

// A hook ends with 0, also where memctl is set up wrongly: some hosts take 2 for a veto.
func TestHookEndsWellWhereASettingIsBad(t *testing.T) {
	home := t.TempDir()
	for _, bad := range []string{"MNEME_MASTER_KEY=bogus:", "MNEME_ADDR=ftp://nowhere", "MNEME_NAMESPACE=No such", "MNEME_TLS_CA=/nowhere"} {
		e := memctl(t, `{"session_id":"s","cwd":"/","prompt":"Remember that deploys happen on Tuesdays."}`, environment(home, bad), "hook", "--agent", "claude-code", "--event", "UserPromptSubmit", "--start", "never")
		if e.code != 0 || strings.Contains(e.err, "goroutine ") {
			t.Errorf("%s: %+v", bad, e)
		}
	}
	if e := memctl(t, "", environment(home, "MNEME_MASTER_KEY=bogus:"), "doctor", "--data-dir", home); e.code != 2 || !strings.Contains(e.err, "MNEME_MASTER_KEY") {
		t.Errorf("who opens a data directory is not told: %+v", e)
	}
}
