package hooks

import (
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mneme/internal/recall"
	"mneme/internal/redact"
	"mneme/memory"
)

const (
	// window is how many bytes of a text are looked at.
	window = 16 << 10

	maxCommand = 200  // characters of a command in a memory
	maxError   = 300  // of what a tool said
	maxSummary = 4000 // of a compaction
	maxQuery   = 2000 // of what is searched for
)

// clean cuts the texts of an event to what is looked at, and takes secrets out of them. It
// returns the rules that found some. Nothing of an event is used before.
func clean(e *Event, emails bool) []string {
	var found []string
	for _, text := range e.texts() {
		s := strings.ToValidUTF8(strings.ReplaceAll(*text, "\x00", ""), "")
		cleaned, cut, rules := redact.Head(s, window, redact.Options{Emails: !emails})
		if cut { // no half of a word
			cleaned = cleaned[:strings.LastIndexAny(cleaned, " \t\r\n")+1]
		}
		*text = cleaned
		found = append(found, rules...)
	}
	return found
}

// keep is one text that an event leaves behind.
type keep struct {
	text     string
	kind     memory.Kind
	role     string
	class    string // why
	category string
	exchange bool // counts towards the three of an exchange
}

// keeps decides what is kept of an event.
func keeps(e *Event, tools bool) []keep {
	var out []keep
	for _, said := range []struct {
		text, role string
	}{{e.Prompt, "user"}, {e.Reply, "assistant"}} {
		if said.text == "" || said.role == "user" && !byUser(e.Source, e.Kind) {
			continue
		}
		for _, f := range Find(said.text, said.role == "assistant") {
			out = append(out, keep{text: f.Text, kind: f.Kind(), role: said.role, class: f.Class, category: f.Category, exchange: true})
		}
	}
	if s := summary(e.Summary); s != "" {
		out = append(out, keep{text: s, kind: memory.KindObservation, role: "assistant", class: summaryClass, category: "other"})
	}
	if k, ok := ofTool(e); ok && tools {
		out = append(out, k)
	}
	return out
}

// byUser: a host also submits prompts that nobody wrote.
func byUser(source string, kind Kind) bool {
	return kind != Prompt || source == "" || source == "user" || source == "sdk"
}

// blocks of memories in a summary, which repeats what the model was given.
var recalled = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?is)<relevant-memories>.*?(?:</relevant-memories>|\z)`)
})

func summary(text string) string {
	text = strings.TrimSpace(recalled().ReplaceAllString(text, ""))
	if utf8.RuneCountInString(text) < minLength || recall.Contains(text) || instructs(text) {
		return ""
	}
	return clip(text, maxSummary)
}

// notable are the commands of which it is worth knowing that they ran.
var notable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|&&|;|\|\|)\s*(?:sudo\s+)?(?:go (?:get|install) \S|npm (?:i|install|add) (?:-\S+ )*[^-\s]|npm publish|pnpm (?:add|publish)|yarn (?:add|publish)|bun add|pip3? install (?:-\S+ )*[^-\s]|uv (?:add|pip install)|poetry add|cargo (?:add|install|publish)|gem install|composer require|apt(?:-get)? (?:-y )?install|brew install|dotnet add|helm (?:install|upgrade|rollback)|kubectl (?:apply|rollout|delete)|terraform (?:apply|destroy)|docker push|git tag \S|git push (?:\S+ )*?(?:-f\b|--force|--tags|--follow-tags|--delete|-d\b|v\d)|(?:make|npm run|task|just) \S*(?:deploy|release|migrate|publish))`)
})

// bare is what a failure says without saying why.
var bare = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bmake(?:\[\d+\])?: \*\*\* \[[^\]]*\]|\b(?:errors?|failed|failure|command|process|tool|task|exit(?:ed)?|with|status|code|returned|non-?zero|the|it)\b|\d+`)
})

// idle is what Git says where there was nothing to do.
var idle = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:nothing (?:added )?to commit|no changes added to commit|already up[- ]to[- ]date|everything up-to-date)\b`)
})

// reason is what a tool said why it failed, "" where it said nothing.
func reason(e *Event) string {
	said := ends(oneLine(e.Error), maxError)
	if !says(bare().ReplaceAllString(said, "")) || idle().MatchString(said) {
		return ""
	}
	return said
}

// ofTool is what is kept of a tool: why it failed, or that it changed something outside the
// files and their history, which Git knows better. Tools of MCP servers are left out: they may
// be memories.
func ofTool(e *Event) (keep, bool) {
	command := clip(oneLine(firstLine(e.Command)), maxCommand)
	if command == "" || e.Stopped || dull().MatchString(command) || recall.Contains(command) || instructs(command) {
		return keep{}, false
	}
	switch e.Kind {
	case ToolFailed:
		said := reason(e)
		if said == "" || recall.Contains(said) || instructs(said) {
			return keep{}, false
		}
		return keep{text: "`" + command + "` failed: " + said, kind: memory.KindError, role: "tool", class: "failure", category: "other"}, true
	case ToolAfter:
		if notable().MatchString(command) {
			return keep{text: "Ran `" + command + "`.", kind: memory.KindToolUsage, role: "tool", class: "command", category: "other"}, true
		}
	}
	return keep{}, false
}

func instructs(text string) bool {
	for _, re := range compiled().never {
		if re.MatchString(text) {
			return true
		}
	}
	return false
}

// query is what an event makes hooks search for; "" is nothing. Where the event has no words of
// its own, the conversation's last prompt is meant.
func query(e *Event, one *session) string {
	switch e.Kind {
	case SessionStart, CompactBefore, CompactAfter:
		return clip(first(e.Prompt, one.Prompt), maxQuery)
	case Prompt:
		if !IsNoise(e.Prompt) {
			return clip(e.Prompt, maxQuery)
		}
	case ToolFailed:
		if !e.Stopped && !dull().MatchString(e.Command) {
			return clip(oneLine(firstLine(e.Command)+" "+reason(e)), maxQuery)
		}
	case ToolAfter, FileEdited:
		if one.Pending { // its host shows prompts, and takes text only now
			return clip(one.Prompt, maxQuery)
		}
	}
	return ""
}

// bearing is what is asked for of the words of an event: not what only asks to remember, nor digits and
// letters that stand alone, each of which is in many memories and would carry one that fits in nothing
// else. The first person stays, and C++.
func bearing(s string) string {
	r := []rune(withoutAsking(s))
	at := func(i int) rune {
		if i < 0 || i >= len(r) {
			return ' '
		}
		return r[i]
	}
	joined := func(sign, beyond rune) bool { return strings.ContainsRune(`._/:@'’-`, sign) && !isSign(beyond) }
	for i, c := range r {
		alone := !isSign(c) && isSign(at(i-1)) && isSign(at(i+1)) && width(string(c)) == 1
		if alone && !strings.ContainsRune("aAiI", c) && !joined(at(i-1), at(i-2)) && !joined(at(i+1), at(i+2)) && at(i+1) != '#' && (at(i+1) != '+' || at(i+2) != '+') {
			r[i] = ' '
		}
	}
	return string(r)
}

// withoutAsking takes out the words that only ask to remember; "" is that nothing else is asked for.
func withoutAsking(s string) string {
	stays := asking().SubexpIndex("stays")
	var sb strings.Builder
	done := 0
	for _, at := range asking().FindAllStringSubmatchIndex(s, -1) {
		if at[2*stays] < 0 {
			sb.WriteString(s[done:at[0]] + " ")
			done = at[1]
		}
	}
	if done == 0 {
		return s
	}
	left := sb.String() + s[done:]
	if !says(idlers().ReplaceAllString(left, " ")) {
		return ""
	}
	return left
}

// justSaid tells memories that say no more than the prompt that is asked for: another hook may
// have kept it a moment ago. Words that stand in a longer sentence say something else there, its opposite it may
// be. Where a conversation goes on, it may have lost that prompt.
func justSaid(e *Event, ask string) func(memory.Hit) bool {
	if e.Kind == ToolFailed || e.Prompt == "" && renews(e) {
		return func(memory.Hit) bool { return false }
	}
	said := statements(ask)
	return func(h memory.Hit) bool {
		text := statements(h.Text)
		return text != "" && !strings.Contains(h.Text, "```") && !strings.Contains(h.Text, "~~~") && strings.Contains(said, text) || recall.SaysSame(h.Text, ask)
	}
}

// statements are the sentences of a text in small letters, each between line feeds, so that one text is in another
// where its sentences are. A sentence does not begin with a small letter: e.g. ends none.
func statements(text string) string {
	var sb strings.Builder
	for _, paragraph := range paragraphs(text) {
		for i, s := range sentences(oneLine(paragraph)) {
			if c, _ := utf8.DecodeRuneInString(s); i == 0 || !unicode.IsLower(c) {
				sb.WriteByte('\n')
			} else {
				sb.WriteByte(' ')
			}
			sb.WriteString(strings.ToLower(strings.TrimRight(s, ".!。！；")))
		}
	}
	if sb.Len() == 0 {
		return ""
	}
	return sb.String() + "\n"
}

func projectName(dir string) string {
	name := path.Base(strings.ReplaceAll(dir, `\`, "/"))
	if name == "." || name == "/" {
		return ""
	}
	return name
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// clip keeps the first n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:n-1]), " ") + "…"
}

// ends keeps the beginning and the end, which say most of what a tool prints.
func ends(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return strings.TrimSpace(string(r[:n/3])) + " … " + strings.TrimSpace(string(r[len(r)-2*n/3:]))
}
