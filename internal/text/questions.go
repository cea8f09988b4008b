package text

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Chinese and Japanese write question words together with what is asked about, so that these are
// found in a question and not among its terms. The first group is what only looks like one.
var questionWords = regexp.MustCompile(`(哪怕|哪吒|[很许更最好众诸太增]多|几乎|几何|いつ[もか]|いつでも|どこ[かも]|どこでも|誰[かも])|` +
	`(?:请|能|可以|能否)?告诉我(?:一下)?|请问(?:一下)?|我?想(?:知道|问)(?:一下)?|[你您]还?(?:知道|记得)|` +
	`是不是|有没有|能不能|会不会|可不可以|要不要|对不对|好不好|该不该|是否|能否|可否|有无|` +
	`的?是?(?:在?(?:什么|啥)(?:时候|时间|地方)|在?(?:何时|何处|何地|哪里|哪儿|哪边)|为(?:什么|啥|何)|(?:什么|啥)(?:东西|样子?|人|事|意思)?|` +
	`怎么(?:样|办|回事)?|怎样|如何|何人|哪(?:一?[个些位年天月种款家只台]|几[个位天种])?|谁的?|` +
	`多少(?:[个人次天年岁]|钱)?|多(?:久|长时间|[长大高远重快深])|(?:星期|礼拜|周)几|几(?:点钟?|月几[号日]|分钟|小时|[个号月岁次天年位种台日条层级楼名块元份家人项遍]))|` +
	`[吗呢嘛啊呀]+(?:[\s\p{P}]|$)|` +
	`[はがをにでの]?(?:いつ|どこ|どの(?:くらい|ぐらい|ように|ような)?|どれ(?:くらい|ぐらい)?|どちら|どっち|どんな|どう(?:やって|して|すれば|したら|いう)|なぜ|なんで|誰|だれ|いくつ|いくら|` +
	`何(?:時間?|曜日|日|月|年|人|個|回|分|歳|番|を|が)?)(?:です|でした)?か?|(?:です|でした|ます|ました|ません|でしょう)か`)

// hangul is a word of Korean with the particles behind it.
var hangul = regexp.MustCompile(`\p{Hangul}+`)

var koreanQuestionWords = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(`언제 언제인가요 언제입니까 언제예요 언제까지 언제부터 어디 어디서 어디에 어디에서 어디로 어디인가요 어디입니까 어디예요 누구 누가 누구의 누구를
		누구인가요 누구입니까 누구예요 무엇 무엇을 무엇이 무엇인가요 무엇입니까 뭐 뭐가 뭐를 뭘 뭐예요 뭔가요 왜 어떻게 어떤 어느 무슨 몇 얼마 얼마나 얼마인가요 얼마입니까`) {
		out[w] = true
	}
	return out
}()

// Asides are the words of a question that it is not about.
type Asides struct {
	question string
	spans    [][]int // of question words that are written together with others
}

// AsidesOf finds what a question is not about: in English by the word, in Chinese, Japanese and Korean
// where its question words stand.
func AsidesOf(question string) Asides {
	a := Asides{question: question}
	if !strings.ContainsFunc(question, isGram) {
		return a
	}
	for _, m := range questionWords.FindAllStringSubmatchIndex(question, -1) {
		if m[2] < 0 {
			a.spans = append(a.spans, m[:2])
		}
	}
	for _, m := range hangul.FindAllStringIndex(question, -1) {
		if koreanQuestionWords[question[m[0]:m[1]]] {
			a.spans = append(a.spans, m)
		}
	}
	return a
}

// Has reports whether a token of the question is not what it is about. A pair of characters of
// which one belongs to a question word is such a token where another pair has the other one.
func (a *Asides) Has(t Token) bool {
	if asides[strings.ToLower(a.question[t.Start:t.End])] {
		return true
	}
	if len(a.spans) == 0 || !IsGram(t.Term) {
		return false
	}
	_, first := utf8.DecodeRuneInString(a.question[t.Start:])
	_, last := utf8.DecodeLastRuneInString(a.question[:t.End])
	from, to := a.at(t.Start), a.at(t.End-last)
	switch {
	case from && to:
		return true
	case from:
		r, _ := utf8.DecodeRuneInString(a.question[t.End:])
		return t.Start+first < t.End && isGram(r) && !a.at(t.End)
	case to:
		r, n := utf8.DecodeLastRuneInString(a.question[:t.Start])
		return isGram(r) && !a.at(t.Start-n)
	}
	return false
}

// IsAside reports whether a question that says only this is about nothing.
func IsAside(question string) bool {
	a, all := AsidesOf(question), true
	Index(question, func(t Token) bool {
		all = a.Has(t)
		return all
	})
	return all
}

// WithoutQuestionWords takes from a question the question words that are written together with others;
// what is nothing else stays as it is.
func WithoutQuestionWords(question string) string {
	var out strings.Builder
	from := 0
	for _, s := range AsidesOf(question).spans {
		out.WriteString(question[from:max(from, s[0])] + " ")
		from = max(from, s[1])
	}
	out.WriteString(question[from:])
	if rest := out.String(); strings.ContainsFunc(rest, unicode.IsLetter) {
		return rest
	}
	return question
}

// at reports whether a question word goes over a place.
func (a *Asides) at(place int) bool {
	for _, s := range a.spans {
		if s[0] <= place && place < s[1] {
			return true
		}
	}
	return false
}
