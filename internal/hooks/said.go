package hooks

import (
	"regexp"
	"strings"
	"sync"
)

// traditional are characters of triggers as they are written in Taiwan and Hong Kong, each before the one that triggers have.
const traditional = "爲为為为習习麼么於于個个從从們们會会寫写決决別别單单發发號号後后嗎吗務务團团備备復复實实對对將将師师幀帧幫帮開开錄录憶忆總总慣惯願愿戶户擇择換换時时構构樣样歡欢沒没測测點点煩烦愛爱現现碼码種种終终經经絕绝統统繼继續续編编計计訂订討讨議议記记許许論论設设詞词試试該该語语說说請请謝谢負负責责敗败還还這这進进選选裡里裏里錯错鍵键長长問问間间隊队題题傾倾厭厌採采寧宁關关來来"

var simplified = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(append(strings.Split(traditional, ""), "’", "'", "‘", "'")...)
})

// plain is a text with the signs that triggers have.
func plain(text string) string { return simplified().Replace(text) }

var (
	quoted = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("`[^`\n]+`|\"[^\"\n]+\"|“[^”\n]+”|„[^“\n]+“|«[^»\n]+»|「[^」\n]+」|『[^』\n]+』|\\B'[^\\s'](?:[^'\n]|'\\w)*'\\B")
	})
	// printed is a line of a log, an error, a comment of code, or what is quoted in Markdown.
	printed = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[^\pL\pN\n]*(?:(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE)[^\pL\pN\n]+)?(?:\d{4}-\d\d-\d\d[T ]\d\d:|\d\d:\d\d:\d\d).*$|^\s*(?://|/\*|>|at [\w.$<>]+\(|(?:[\w.]*(?:[Ee]rror|Exception)|panic|fatal):).*$`)
	})
)

// said is a text without what somebody else says in it: quotes, code, and what programs print. What the one
// who speaks prefers, decides or asks for stands in the rest.
func said(text string) string {
	if strings.Contains(text, "```") || strings.Contains(text, "~~~") {
		text = strings.Join(paragraphs(text), "\n")
	}
	return quoted().ReplaceAllString(printed().ReplaceAllString(text, ""), "`x`")
}
