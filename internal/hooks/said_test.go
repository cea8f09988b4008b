package hooks

import (
	"slices"
	"strings"
	"testing"
)

// TestWhatOthersSayWasKept: quotes, code and logs have the words of triggers, and nobody says them.
func TestWhatOthersSayWasKept(t *testing.T) {
	for _, text := range []string{
		`Write a README section called "Why we use Bazel".`, `Please translate: "We decided to move the office to Berlin."`, "Rename the heading “I prefer tabs” to something else.", "把日志里的“重要”两个字去掉。", "这段代码里「以后都用 v2」是什么", "『我喜欢用制表符』这句话翻译一下",
		"Delete the line `// never call this, we decided to drop it` in pool.go", `The form says "my name is" above the field`, `She wrote "We chose Go. Never use Rust." above it`,
		"Write a README section called 'Why we use Bazel'", "rename the button to 'I don't prefer dark mode'.", "translate ‘We decided to move to Berlin’ to German", "the heading says «we decided to use Go»", "Der Titel ist „We decided to use Go“ bisher",
		"> We decided to use Postgres for billing.\nWho wrote that", "error: important: the field is null", "TypeError: we use undefined here", "java.lang.IllegalStateException: we decided to stop\n\tat com.example.Foo.never(Foo.java:12) is important", "panic: we decided to stop", "fatal: always run it first",
		"Look at this:\n```go\n// never panic in here\npanic(1)\n```\nand run it", "Look at this:\n~~~\nImportant: the port is 8443\n~~~", "Look at this:\n```\nremember that x is 1",
		"2026-11-03 12:01:44 worker: always check the DSN", "ERROR 2026-11-03T12:01:44Z worker: refused, always check the DSN", "[WARN] 12:01:44.003 we decided to skip the cache", "Here it is:\n  2026-11-03 12:01:44 important: x",
		"// never call this from the main thread", "Here it is:\n\t// always hold the lock\n\tx.mu.Lock()", "/* important: x is never nil */",
	} {
		if found := Find(text, false); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
	for text, class := range map[string]string{
		`Remember this: "deploys happen on Tuesdays"`: "remember", `I prefer "tabs" over "spaces"`: "preference", "Use `pnpm` instead of `npm`": "correction", "记住：“生产库只能通过跳板机访问”": "remember", "The port is `8443`, not `443`": "correction",
		"Never use a 5\" disk": "emphasis", "We decided on this:\n```go\nx := 1\n```": "decision", "```make check``` comes first.\nRemember that it has to pass.": "remember", "会议在 2026-11-03 12:00:00 决定了用 Go": "decision",
		"I prefer \"x\nand y\" as it is": "preference", "I prefer 'single quotes' in TypeScript": "preference", "don't use the users' table, use accounts": "correction", "Ann's rule: never push to main, it's Bob's": "emphasis", "Error handling: always wrap what you pass on": "emphasis",
		"> Shall I use tabs?\nI prefer spaces": "preference", "Remember this: 'deploys happen on Tuesdays'": "remember",
	} {
		if found := Find(text, false); len(found) != 1 || found[0].Text != text || found[0].Class != class {
			t.Errorf("%q: %+v, want %s", text, found, class)
		}
	}
}

// TestATypedApostropheWasMissed: systems put a curly one for it.
func TestATypedApostropheWasMissed(t *testing.T) {
	for text, class := range map[string]string{
		"Don’t use moment.js, use date-fns": "correction", "I’m a backend developer in Oslo": "personal", "We’ve settled on trunk-based development": "decision", "I’d like short answers": "preference", "Don’t forget the licence header": "remember",
	} {
		if found := Find(text, false); len(found) != 1 || found[0].Text != text || found[0].Class != class {
			t.Errorf("%q: %+v, want %s", text, found, class)
		}
	}
	for _, text := range []string{"Don’t forget!", "I don’t remember what it was", "I’d like to see the diff"} {
		if found := Find(text, false); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
}

// TestTraditionalChineseWasMissed, as it is written in Taiwan and Hong Kong.
func TestTraditionalChineseWasMissed(t *testing.T) {
	for text, c := range map[string][2]string{
		"請記住：部署腳本在 ops 資料夾": {"remember", "fact"}, "別忘了更新變更日誌": {"remember", "other"}, "我們決定採用單體架構": {"decision", "decision"}, "資料庫改用 PostgreSQL 十六版": {"decision", "decision"}, "我喜歡用四個空格縮排": {"preference", "preference"},
		"從現在起不要自動提交": {"decision", "decision"}, "我習慣先寫測試": {"preference", "preference"}, "大家最終選擇了 NATS": {"decision", "decision"}, "重要：發布前必須備份": {"emphasis", "other"}, "不對，連接埠是 8443": {"correction", "fact"}, "我是一個後端工程師": {"personal", "fact"},
	} {
		if found := Find(text, false); len(found) != 1 || found[0].Text != text || found[0].Class != c[0] || found[0].Category != c[1] {
			t.Errorf("%q: %+v, want %s", text, found, c)
		}
	}
	for _, text := range []string{"請記住", "你還記得昨天我們做了什麼嗎", "我們還沒決定用哪個資料庫", "運行一下測試", "不對，還是報錯"} {
		if found := Find(text, false); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
	for _, text := range []string{"繼續", "謝謝", "好吧。"} {
		if !IsNoise(text) {
			t.Errorf("%q is no noise", text)
		}
	}
	var all strings.Builder
	for i := range triggers {
		all.WriteString(triggers[i].pattern + triggers[i].unless)
	}
	for _, c := range categories {
		all.WriteString(c.pattern)
	}
	words := all.String() + noise().String()
	for pair := range slices.Chunk([]rune(traditional), 2) {
		if pair[0] == pair[1] || strings.ContainsRune(words, pair[0]) || !strings.ContainsRune(words, pair[1]) {
			t.Errorf("%c for %c: triggers have the first or lack the second", pair[0], pair[1])
		}
	}
}
