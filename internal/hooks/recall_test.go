package hooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// TestASessionBeganWithTheFoldersName: nobody had asked for what holds the word "shop".
func TestASessionBeganWithTheFoldersName(t *testing.T) {
	w := newWorld(t)
	important := 0.9
	for i, r := range []memory.Record{
		{Text: "The shop closes at six.", Kind: memory.KindFact},
		{Text: "Always run make gen before committing.", Kind: memory.KindPractice, Importance: &important},
		{Text: "We decided to use Postgres.", Kind: memory.KindDecision},
		{Text: "I prefer tabs.", Kind: memory.KindPreference},
		{Text: "I prefer tabs!", Kind: memory.KindPreference},
		{Text: "The shop sells crabs.", Kind: memory.KindOther},
	} {
		r.RecordID, r.CreatedAt = fmt.Sprint(i), testNow.Add(time.Duration(i)*time.Second)
		w.node.records = append(w.node.records, r)
	}
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	w.node.set(func() { w.node.asked = nil })
	start := func(agent, event, payload string) []string {
		t.Helper()
		out := w.hook(agent, event, payload)
		var lines []string
		for line := range strings.SplitSeq(out, `\n`) {
			if _, text, ok := strings.Cut(line, "] "); ok {
				lines = append(lines, text)
			}
		}
		return lines
	}
	want := []string{"Always run make gen before committing.", "Remember that deploys happen on Tuesdays.", "I prefer tabs!", "We decided to use Postgres."}
	for _, c := range [][3]string{
		{Copilot, "sessionStart", `{"sessionId":"c","cwd":"/home/u/shop","source":"new"}`},
		{Antigravity, "PreInvocation", `{"conversationId":"a","workspacePaths":["/home/u/shop"],"invocationNum":0}`},
		{Cursor, "sessionStart", `{"conversation_id":"c","workspace_roots":["/home/u/shop"]}`},
	} {
		if got := start(c[0], c[1], c[2]); !slices.Equal(got, want) {
			t.Errorf("%s begins with %q", c[0], got)
		}
	}
	all, err := w.disk().Recalls()
	if err != nil {
		t.Fatal(err)
	}
	if last := all[len(all)-1]; last.Outcome != "injected" || len(last.Hits) != 4 || last.Query != standingQuery {
		t.Errorf("%+v", last)
	}
	// Its first prompt is searched for, and comes first.
	if got := start(Copilot, "sessionStart", `{"sessionId":"d","cwd":"/home/u/shop","initialPrompt":"which crabs do we sell"}`); !slices.Equal(got, append([]string{"The shop sells crabs."}, want...)) {
		t.Errorf("with a prompt: %q", got)
	}
	// So is one that Copilot told before the beginning, as it does in some versions.
	w.hook(Copilot, "userPromptSubmitted", `{"sessionId":"e","cwd":"/home/u/shop","prompt":"what crabs do we sell"}`)
	if got := start(Copilot, "sessionStart", `{"sessionId":"e","cwd":"/home/u/shop","source":"new"}`); !slices.Equal(got, append([]string{"The shop sells crabs."}, want...)) {
		t.Errorf("behind a prompt: %q", got)
	}
	// Where each prompt brings what fits it, nothing is said before there is one.
	for _, c := range [][3]string{
		{ClaudeCode, "SessionStart", `{"session_id":"x","cwd":"/home/u/shop","source":"startup"}`}, {Codex, "SessionStart", `{"session_id":"x","cwd":"/home/u/shop","source":"startup"}`},
		{GeminiCLI, "SessionStart", `{"session_id":"x","cwd":"/home/u/shop","source":"startup"}`}, {Kiro, "agentSpawn", `{"cwd":"/home/u/shop"}`},
	} {
		if out := w.hook(c[0], c[1], c[2]); strings.Contains(out, "relevant-memories") {
			t.Errorf("%s is told %q", c[0], out)
		}
	}
	if want := []string{"which crabs do we sell", "what crabs do we sell"}; !slices.Equal(w.node.asked, want) {
		t.Errorf("asked for %q", w.node.asked)
	}
}

// TestOneDigitCarriedAHit: "fix issue 3" found "node 3".
func TestOneDigitCarriedAHit(t *testing.T) {
	for ask, want := range map[string]string{
		"fix issue 3": "fix issue", "what's 2+2": "what's +", "why does node 3 flap?": "why does node flap?", "step 4: run it": "step : run it", "rename x to total": "rename to total", "x=1": "=",
		"what did I say about a cache": "what did I say about a cache", "golangci-lint v2": "golangci-lint v2", "Go 1.26 on node-3": "Go 1.26 on node-3", "write it in C++ or C#": "write it in C++ or C#",
		"猫 在 3 楼": "猫 在 楼", "run -n 5 and b.N": "run - and b.N", "don't": "don't", "5": "", "issue 42": "issue 42", "п 3 сборка": "сборка",
	} {
		if got := oneLine(bearing(ask)); got != want {
			t.Errorf("%q is asked for as %q, want %q", ask, got, want)
		}
	}
	w := newWorld(t)
	w.prompt("one", "why is node 3 slow?")
	w.prompt("one", "3 + 4 = ?")
	if !slices.Equal(w.node.asked, []string{"why is node   slow?"}) {
		t.Errorf("asked for %q", w.node.asked)
	}
	if all, err := w.disk().Recalls(); err != nil || len(all) != 2 || all[0].Query != "why is node 3 slow?" || all[1].Outcome != "nothing found" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestARepeatIsNotGivenAfterItsTwin: what a block folded stands in the conversation, too.
func TestARepeatIsNotGivenAfterItsTwin(t *testing.T) {
	w := newWorld(t)
	for i, text := range []string{"Deploys happen on Tuesdays.", "deploys happen on Tuesdays", "Deploys happen, on Tuesdays!", "Rollbacks of deploys take an hour."} {
		w.node.records = append(w.node.records, memory.Record{RecordID: fmt.Sprint(i), Text: text})
	}
	if out := w.prompt("two", "when do our deploys happen?"); strings.Count(out, "mem://") != 2 {
		t.Errorf("got %q", out)
	}
	if out := w.prompt("two", "say again when deploys happen"); out != "" {
		t.Errorf("a twin is given again: %q", out)
	}
	all, err := w.disk().Recalls()
	if err != nil || len(all) != 2 || all[1].Outcome != "given before" || !slices.Equal(all[0].Hits[0].Same, []string{"1", "2"}) {
		b, _ := json.Marshal(all)
		t.Errorf("%s, %v", b, err)
	}
}

// TestWhatWasJustSaidCameBack: where Cursor runs the hooks of Claude Code, too, the first one
// keeps the prompt and the second one found it.
func TestWhatWasJustSaidCameBack(t *testing.T) {
	said := "The deploys are  slow. Remember that deploys happen on Tuesdays."
	w := newWorld(t)
	w.hook(Cursor, "beforeSubmitPrompt", toJSON(map[string]string{"conversation_id": "c", "prompt": said}))
	if len(w.node.records) != 1 {
		t.Fatalf("%q", w.node.texts())
	}
	if out := w.atOnce(ClaudeCode, "UserPromptSubmit", toJSON(map[string]string{"session_id": "c", "prompt": said})); out != "" {
		t.Errorf("Claude's hook answers %q", out)
	}
	if out := w.atOnce(Cursor, "postToolUse", `{"conversation_id":"c","tool_name":"Shell","tool_input":{"command":"ls"},"tool_output":"{\"exitCode\":0}"}`); out != "" {
		t.Errorf("behind a tool it comes, too: %q", out)
	}
	w.node.set(func() {
		w.node.records = append(w.node.records, memory.Record{RecordID: "x", Text: "Remember that deploys happen on Tuesdays."}, memory.Record{RecordID: "y", Text: "The deploys take an hour."})
	})
	if out := w.prompt("e", said); strings.Count(out, "mem://") != 1 || !strings.Contains(out, "an hour") {
		t.Errorf("a sentence of it comes back: %q", out)
	}
	// A compaction may have taken it away.
	if out := w.hook(ClaudeCode, "SessionStart", `{"session_id":"e","source":"compact"}`); !strings.Contains(out, "Tuesdays") {
		t.Errorf("after a compaction: %q", out)
	}
}

// TestAMemoryThatSaysTheOppositeWasWithheld: of a long prompt one word makes little difference to how
// alike they are, and the memory is the one that would correct who asks.
func TestAMemoryThatSaysTheOppositeWasWithheld(t *testing.T) {
	const said = "We decided that the payment service of the shop in Berlin must %s retry a failed request to the bank three times before it gives up and tells the customer about it, and logs it"
	w := newWorld(t)
	w.set.Capture = false
	w.node.set(func() {
		w.node.records = append(w.node.records, memory.Record{RecordID: "x", Text: fmt.Sprintf(said, "never")})
	})
	if out := w.prompt("c", fmt.Sprintf(said, "always")); !strings.Contains(out, "never") {
		t.Errorf("it is not given: %q", out)
	}
}

// TestAMemoryInASentenceThatNegatesItWasWithheld: its words stood in the prompt.
func TestAMemoryInASentenceThatNegatesItWasWithheld(t *testing.T) {
	for prompt, given := range map[string]bool{
		"we must not deploy the shop on Fridays, right?":                                  true,
		"Is it true that nobody may deploy the shop on Fridays any more?":                 true,
		"There are things that we must never do, e.g. deploy the shop on Fridays.":        true,
		"We must never\ndeploy the shop on Fridays":                                       true,
		"deploy the shop on Fridays?":                                                     true,
		"No more of this: deploy the shop on Fridays":                                     true,
		"We do not deploy the shop on Fridays":                                            true,
		"deploy the shop on Fridays unless it is raining":                                 true,
		"Deploy the shop on Fridays!":                                                     false,
		"There are rules. Deploy the shop  on Fridays. What else is there?":               false,
		"What there is to know:\n\ndeploy the shop on Fridays\n\nand what else is there?": false,
		"- mind the gap\n- deploy the shop on Fridays\n- go home":                         false,
	} {
		w := newWorld(t)
		w.set.Capture = false
		w.node.set(func() {
			w.node.records = append(w.node.records, memory.Record{RecordID: "x", Text: "deploy the shop on Fridays"})
		})
		if out := w.prompt("c", prompt); strings.Contains(out, "Fridays") != given {
			t.Errorf("%q is answered %q", prompt, out)
		}
	}
}

// TestSeveralSentencesWereSaid where they stand in the prompt one behind the other.
func TestSeveralSentencesWereSaid(t *testing.T) {
	said := justSaid(&Event{Kind: Prompt}, "Is the shop open? Yes, it is. Is the bank open? No, it is not. ```go test```")
	for text, want := range map[string]bool{"Is the shop open? Yes, it is.": true, "is the shop open? No, it is not": false, "Yes, it is. Is the bank open?": true,
		"the shop open? Yes, it is": false, "Yes, it is.\n```\ngo vet\n```": false, "": false, "```": false} {
		if said(memory.Hit{Text: text}) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// TestCompactionsAreNoticed: each host that tells of one is given again what it lost, and those
// that tell of none are after a while.
func TestCompactionsAreNoticed(t *testing.T) {
	asks := map[string][2]string{
		ClaudeCode: {"UserPromptSubmit", `{"session_id":"s","prompt":"when do deploys happen?"}`},
		Codex:      {"UserPromptSubmit", `{"session_id":"s","prompt":"when do deploys happen?"}`},
		GeminiCLI:  {"BeforeAgent", `{"session_id":"s","prompt":"when do deploys happen?"}`},
		Kiro:       {"UserPromptSubmit", `{"session_id":"s","prompt":"when do deploys happen?"}`},
		OpenCode:   {"chat.message", `{"session_id":"s","prompt":"when do deploys happen?"}`},
	}
	for _, c := range []struct {
		agent, event, payload string
		at                    bool // it is given then
	}{
		{ClaudeCode, "SessionStart", `{"session_id":"s","source":"compact"}`, true},
		{ClaudeCode, "PreCompact", `{"session_id":"s","trigger":"auto"}`, false},
		{Codex, "SessionStart", `{"session_id":"s","source":"compact"}`, true},
		{Codex, "PreCompact", `{"session_id":"s","trigger":"auto"}`, false},
		{GeminiCLI, "PreCompress", `{"session_id":"s","trigger":"auto"}`, false},
		{Kiro, "PreCompact", `{"session_id":"s"}`, false},
		{Kiro, "PostCompact", `{"session_id":"s"}`, true},
		{OpenCode, "session.compacting", `{"session_id":"s"}`, true},
		{OpenCode, "session.compacted", `{"session_id":"s"}`, false},
	} {
		w := newWorld(t)
		w.prompt("before", "Remember that deploys happen on Tuesdays.")
		ask := func() bool {
			return strings.Contains(w.hook(c.agent, asks[c.agent][0], asks[c.agent][1]), "Tuesdays")
		}
		if !ask() || ask() {
			t.Fatalf("%s is not given it once", c.agent)
		}
		if at := strings.Contains(w.hook(c.agent, c.event, c.payload), "Tuesdays"); at != c.at {
			t.Errorf("%s is given it at %s: %v", c.agent, c.event, at)
		}
		if again := ask(); again == c.at {
			t.Errorf("%s is given it with the prompt behind %s: %v", c.agent, c.event, again)
		}
	}
	// What was given for the summary is not in the context behind it.
	w := newWorld(t)
	w.prompt("before", "Remember that deploys happen on Tuesdays.")
	w.hook(OpenCode, "chat.message", asks[OpenCode][1])
	w.hook(OpenCode, "session.compacting", `{"session_id":"s"}`)
	w.hook(OpenCode, "session.compacted", `{"session_id":"s"}`)
	if out := w.hook(OpenCode, "chat.message", asks[OpenCode][1]); !strings.Contains(out, "Tuesdays") {
		t.Errorf("OpenCode is given %q", out)
	}
	// What a beginning gave stands in the context when Claude Code tells its summary.
	w.hook(ClaudeCode, "UserPromptSubmit", asks[ClaudeCode][1])
	w.hook(ClaudeCode, "SessionStart", `{"session_id":"s","source":"compact"}`)
	w.hook(ClaudeCode, "PostCompact", `{"session_id":"s","compact_summary":"We looked at the lease."}`)
	if out := w.hook(ClaudeCode, "UserPromptSubmit", asks[ClaudeCode][1]); out != "" {
		t.Errorf("Claude Code is given it twice: %q", out)
	}
}

// TestCursorIsGivenItAgainBehindATool, when it compacted within an exchange.
func TestCursorIsGivenItAgainBehindATool(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	w.hook(Cursor, "beforeSubmitPrompt", `{"conversation_id":"c","prompt":"when do deploys happen?"}`)
	tool := func() bool {
		return strings.Contains(w.hook(Cursor, "postToolUse", `{"conversation_id":"c","tool_name":"Shell","tool_input":{"command":"ls"},"tool_output":"{}"}`), "Tuesdays")
	}
	if !tool() || tool() {
		t.Fatal("it is not given once")
	}
	w.hook(Cursor, "preCompact", `{"conversation_id":"c","trigger":"auto"}`)
	if !tool() || tool() {
		t.Error("it is not given once more")
	}
}

// TestWhatStandsThereDoesNotStandForEver, whether it was given or said there: a host may compact without a word.
func TestWhatStandsThereDoesNotStandForEver(t *testing.T) {
	for _, c := range []struct {
		said string // the conversation in which it is said
		want []int  // the prompts with which it is given
	}{{"before", []int{0, maxLasting + 1}}, {"one", []int{maxLasting}}} {
		w := newWorld(t)
		w.prompt(c.said, "Remember that deploys happen on Tuesdays.")
		var given []int
		for i := range maxLasting + 10 {
			if out := w.prompt("one", "when do deploys happen?"); out != "" {
				given = append(given, i)
			}
		}
		if !slices.Equal(given, c.want) {
			t.Errorf("said in %s it is given with the prompts %v, want %v", c.said, given, c.want)
		}
	}
}

// TestAConversationWasGivenWhatItHadSaid a moment before, also as it was imported: that stands in its context until it compacts.
func TestAConversationWasGivenWhatItHadSaid(t *testing.T) {
	const said, ask = "Remember that deploys happen on Tuesdays.", "when do deploys happen?"
	w := newWorld(t)
	w.prompt("one", said)
	w.hook(ClaudeCode, "Stop", `{"session_id":"one","last_assistant_message":"We decided to freeze the deploys on Mondays."}`)
	w.node.set(func() { w.node.records = append(w.node.records, memory.Record{RecordID: "imported", Text: said}) })
	if len(w.node.texts()) != 3 {
		t.Fatalf("%q", w.node.texts())
	}
	if out := w.prompt("one", ask); out != "" {
		t.Errorf("it is given %q", out)
	}
	if all, err := w.disk().Recalls(); err != nil || all[len(all)-1].Outcome != "given before" {
		t.Errorf("%+v, %v", all, err)
	}
	if out := w.prompt("two", ask); !strings.Contains(out, "Tuesdays") || !strings.Contains(out, "Mondays") {
		t.Errorf("another conversation is given %q", out)
	}
	if out := w.hook(ClaudeCode, "SessionStart", `{"session_id":"one","source":"compact"}`); !strings.Contains(out, "Tuesdays") {
		t.Errorf("behind a compaction it is given %q", out)
	}
	// A host that names no conversations may have begun another one in that folder.
	w.hook(Kiro, "userPromptSubmit", toJSON(map[string]string{"cwd": "/home/u/kiro", "prompt": "Remember that kiro builds run nightly."}))
	if out := w.hook(Kiro, "userPromptSubmit", toJSON(map[string]string{"cwd": "/home/u/kiro", "prompt": "when do kiro builds run?"})); !strings.Contains(out, "nightly") {
		t.Errorf("without a conversation it is given %q", out)
	}
}

// TestABlockHasSixMemories at most, however many fit.
func TestABlockHasSixMemories(t *testing.T) {
	w := newWorld(t)
	for i := range 8 {
		w.prompt(fmt.Sprint(i), fmt.Sprintf("Remember that deploys of service %d happen on day %d.", i, i))
	}
	if out := w.prompt("s", "when do deploys happen?"); strings.Count(out, "mem://") != 6 {
		t.Errorf("given %q", out)
	}
}

// TestWhatASubagentWasGivenStoodInTheConversation: it has a context of its own, under the same session.
func TestWhatASubagentWasGivenStoodInTheConversation(t *testing.T) {
	failed := func(within, command string) string {
		return `{"session_id":"s","agent_id":"` + within + `","tool_name":"Bash","tool_input":{"command":"` + command + `"},"error":"deploys are frozen"}`
	}
	w := newWorld(t)
	w.prompt("before", "Remember that deploys happen on Tuesdays.")
	for _, within := range []string{"a1", "a2"} {
		if out := w.hook(ClaudeCode, "PostToolUseFailure", failed(within, "make deploys")); !strings.Contains(out, "Tuesdays") {
			t.Errorf("the subagent %s is given %q", within, out)
		}
		if out := w.hook(ClaudeCode, "PostToolUseFailure", failed(within, "make deploys-all")); strings.Contains(out, "Tuesdays") {
			t.Errorf("the subagent %s is given it twice: %q", within, out)
		}
	}
	// And what it met is no news to itself alone.
	if out := w.prompt("s", "when do deploys happen?"); !strings.Contains(out, "Tuesdays") || !strings.Contains(out, "frozen") {
		t.Errorf("the conversation is given %q", out)
	}
}

// TestSubagentsPushedConversationsOut, nor do conversations subagents.
func TestSubagentsPushedConversationsOut(t *testing.T) {
	s := &state{Sessions: map[string]*session{}}
	for _, prefix := range []string{"conversation", "agent"} {
		for i := range maxSessions + 3 {
			e := &Event{Agent: ClaudeCode, Session: "s", Within: fmt.Sprint(i)}
			if prefix == "conversation" {
				e.Session, e.Within = e.Within, ""
			}
			s.session(e, testNow.Add(time.Duration(i)*time.Second))
			s.prune(testNow)
		}
	}
	for i := range maxSessions + 3 {
		for _, e := range []*Event{{Agent: ClaudeCode, Session: fmt.Sprint(i)}, {Agent: ClaudeCode, Session: "s", Within: fmt.Sprint(i)}} {
			if there := s.Sessions[sessionKey(e)] != nil; there != (i >= 3) {
				t.Errorf("%s %s is there: %v", e.Session, e.Within, there)
			}
		}
	}
}

// TestAConversationBeganWithThePromptOfAnother, where the host names none, or names both alike.
func TestAConversationBeganWithThePromptOfAnother(t *testing.T) {
	for _, c := range []struct {
		agent, asks, asked, begins, source string
		given                              bool
	}{
		{Kiro, "userPromptSubmit", `"cwd":"/home/u/proj"`, "agentSpawn", "", false},
		{Codex, "UserPromptSubmit", `"session_id":"s"`, "SessionStart", `,"source":"clear"`, false},
		{Codex, "UserPromptSubmit", `"session_id":"s"`, "SessionStart", `,"source":"resume"`, true},
	} {
		w := newWorld(t)
		w.prompt("before", "Remember that deploys happen on Tuesdays.")
		w.hook(c.agent, c.asks, `{`+c.asked+`,"prompt":"when do deploys happen?"}`)
		if out := w.hook(c.agent, c.begins, `{`+c.asked+c.source+`}`); (out != "") != c.given {
			t.Errorf("%s %s is given %q", c.agent, c.source, out)
		}
	}
	// The summary of one stands in it, and not in the next.
	w := newWorld(t)
	in := `{"cwd":"/home/u/proj"`
	w.hook(Kiro, "PostCompact", in+`,"summary":"We moved the deploys to Tuesdays."}`)
	w.hook(Kiro, "agentSpawn", in+`}`)
	if out := w.hook(Kiro, "userPromptSubmit", in+`,"prompt":"when do deploys happen?"}`); !strings.Contains(out, "Tuesdays") {
		t.Errorf("the next one is given %q", out)
	}
}

// TestEntriesOfBothScopesGaveTwoBlocks: a host that has hooks of the user and of the project runs two
// at once, and tells both the same.
func TestEntriesOfBothScopesGaveTwoBlocks(t *testing.T) {
	for _, c := range [][3]string{
		{ClaudeCode, "UserPromptSubmit", `{"session_id":"s","prompt":"when do deploys happen?"}`},
		{ClaudeCode, "PostToolUseFailure", `{"session_id":"s","tool_name":"Bash","tool_input":{"command":"make deploys"},"error":"no deploys today"}`},
		{Copilot, "sessionStart", `{"sessionId":"s","cwd":"/home/u/shop","initialPrompt":"when do deploys happen?"}`},
		{Copilot, "sessionStart", `{"sessionId":"s","cwd":"/home/u/shop"}`},
	} {
		w := newWorld(t)
		w.prompt("before", "Remember that deploys happen on Tuesdays.")
		w.now = w.now.Add(time.Minute)
		var runners []*Runner
		for range 3 { // each of them knows what was given before one of them gives anything
			e, err := Normalise(c[0], c[1], []byte(c[2]))
			if err != nil {
				t.Fatal(err)
			}
			r := w.runner(c[0])
			r.Keep(t.Context(), &e)
			runners = append(runners, r)
		}
		blocks := 0
		for _, r := range runners {
			e, _ := Normalise(c[0], c[1], []byte(c[2]))
			if r.Recall(t.Context(), &e) != "" {
				blocks++
			}
		}
		if blocks != 1 {
			t.Errorf("%s at %s gets %d blocks", c[0], c[1], blocks)
		}
	}
	// What comes later is another event, and another namespace has other memories.
	w := newWorld(t)
	w.prompt("before", "Remember that deploys happen on Tuesdays.")
	ask := `{"session_id":"s","prompt":"when do deploys happen?"}`
	if w.hook(ClaudeCode, "UserPromptSubmit", ask) == "" {
		t.Error("it is not given")
	}
	e, _ := Normalise(ClaudeCode, "UserPromptSubmit", []byte(strings.Replace(ask, `"s"`, `"t"`, 1)))
	r := w.runner(ClaudeCode)
	if r.Recall(t.Context(), &e) == "" {
		t.Error("another conversation is not given it")
	}
	r = w.runner(ClaudeCode)
	r.Namespace = "team-b"
	if r.Recall(t.Context(), &e); len(w.node.asked) != 4 {
		t.Errorf("the other namespace is not asked: %q", w.node.asked)
	}
}

// TestASummaryWasGivenToTheConversationThatItStandsIn: the context begins with it until the next one.
func TestASummaryWasGivenToTheConversationThatItStandsIn(t *testing.T) {
	w := newWorld(t)
	long := "We moved the deploys to Tuesdays and wrote it down. " + strings.Repeat("Then we looked at the lease of the node. ", 40)
	compact := func(summary string) {
		w.hook(ClaudeCode, "PostCompact", toJSON(map[string]string{"session_id": "s", "trigger": "auto", "compact_summary": summary}))
	}
	begin := func(session string) string {
		return w.hook(ClaudeCode, "SessionStart", `{"session_id":"`+session+`","source":"compact"}`)
	}
	w.prompt("s", "when are the deploys?")
	for _, c := range [][2]string{{"We moved the deploys to Tuesdays, all of them.", "all of them"}, {long, "wrote it down"}} {
		text, own := c[0], c[1]
		compact(text)
		if !strings.Contains(strings.Join(w.node.texts(), "|"), own) {
			t.Fatalf("it is not kept: %q", w.node.texts())
		}
		if out := begin("s"); strings.Contains(out, own) {
			t.Errorf("the summary is given at the beginning behind it: %q", out)
		}
	}
	w.node.set(func() {
		w.node.records = slices.DeleteFunc(w.node.records, func(r memory.Record) bool { return !strings.Contains(r.Text, "wrote") })
	})
	if out := w.prompt("s", "when do deploys happen?"); out != "" {
		t.Errorf("it is given with a prompt: %q", out)
	}
	if all, err := w.disk().Recalls(); err != nil || all[len(all)-1].Outcome != "given before" {
		t.Errorf("%+v, %v", all, err)
	}
	if out := w.prompt("t", "when do deploys happen?"); !strings.Contains(out, "moved the deploys") {
		t.Errorf("another conversation gets %q", out)
	}
	compact("We talked about something else altogether.")
	if out := begin("s"); !strings.Contains(out, "moved the deploys") {
		t.Errorf("behind the next one it is not given: %q", out)
	}
	// Kiro tells the summary when it takes text.
	w = newWorld(t)
	w.hook(Kiro, "UserPromptSubmit", `{"session_id":"k","prompt":"when are the deploys?"}`)
	w.hook(Kiro, "PostCompact", `{"session_id":"k","summary":"We moved the deploys to Tuesdays."}`)
	if out := w.hook(Kiro, "PostCompact", `{"session_id":"k","summary":"We moved the deploys to Tuesdays."}`); out != "" {
		t.Errorf("Kiro gets %q", out)
	}
}

// TestRememberFoundAllThatWasAskedToBeRemembered: those memories begin with the word, and are about
// something else.
func TestRememberFoundAllThatWasAskedToBeRemembered(t *testing.T) {
	for ask, want := range map[string]string{
		"Remember that deploys happen on Tuesdays": "that deploys happen on Tuesdays", "I can't remember how to exit vim": "I can't how to exit vim",
		"Do you remember when deploys happen?": "Do you when deploys happen?", "what was the port again? I never remembered it": "what was the port again? I never it",
		"Don't forget the backup": "the backup", "don’t forget: port 8443": ": port 8443", "keep in mind that CI is slow": "that CI is slow", "Note that CI is slow": "CI is slow",
		"Save it to your memory: CI is slow": ": CI is slow", "make a note that CI is slow": "CI is slow", "for the record, CI is slow": ", CI is slow",
		"请记住部署在周二": "部署在周二", "记住：端口是 8443": "：端口是 8443", "别忘了备份": "备份", "你还记得部署在哪天吗": "你 部署在哪天吗", "存到你的记忆里：我们周五不上线": "：我们周五不上线", "记得备份": "备份",
		// Nothing is asked for.
		"Do you remember?": "", "remember this!": "", "Do you remember what we talked about?": "", "What do you remember about me?": "", "Please remember everything I told you.": "", "I don't remember": "", "Can't you remember?": "",
		"记住": "", "你记得吗": "", "你还记得什么？": "", "请记住这个": "", "你还记得我们上次说过什么吗？": "", "记得": "",
		// What is asked for is called so.
		"the remember-me cookie expires": "the remember-me cookie expires", "remember me is broken": "remember me is broken", "记住密码的选项坏了": "记住密码的选项坏了", "set remember_token": "set remember_token",
		"what do the release notes say": "what do the release notes say", "sessions are kept in memory": "sessions are kept in memory", "how do I forget a memory": "how do I forget a memory", "忘记密码怎么办": "忘记密码怎么办",
		"他登记得很清楚": "他登记得很清楚", "what did we talk about?": "what did we talk about?", "store it in shared memory": "store it in shared memory",
	} {
		if got := oneLine(bearing(ask)); got != want {
			t.Errorf("%q is asked for as %q, want %q", ask, got, want)
		}
	}
	w := newWorld(t)
	w.prompt("one", "Remember that the printer stands in room 12.")
	w.prompt("one", "Remember that deploys happen on Tuesdays.")
	for _, ask := range []string{"Do you remember what we talked about?", "I can't remember how to exit vim", "remember?"} {
		if out := w.prompt("two", ask); out != "" {
			t.Errorf("%q is given %q", ask, out)
		}
	}
	if out := w.prompt("two", "Do you remember when deploys happen?"); strings.Count(out, "mem://") != 1 || !strings.Contains(out, "Tuesdays") {
		t.Errorf("what is asked for is not given: %q", out)
	}
}
