package hooks

import (
	"strings"
	"testing"
)

// noiseSamples are prompts that say nothing by themselves.
var noiseSamples = strings.Split("ok|okay|yes|yep|yeah|sure|no|nope|go|go on|go ahead|continue|proceed|next|done|thank|thanks|thank you|thanks you|thx|great|good|nice|cool|perfect|retry|try again|again|stop|wait|y|n|lgtm|"+
	"好|好的|好吧|可以|继续|是|是的|对|不|不是|谢谢|嗯|行|停", "|")

// realSentences have a place for one of them. The letters beside it are of many scripts.
var realSentences = []string{
	"负责支付的人%s谁", "数据库的密码%s在哪里", "周五%s部署吗", "请%s比数据库方案", "值班手机%s找吗", "部署的脚本 %s 在哪一台机器上",
	"как собрать модуль %s", "%s собрать модуль как", "πώς χτίζω %s το πρόγραμμα", "كيف %s أبني البرنامج", "איך בונים %s את התוכנית",
	"프로그램을 어떻게 %s 빌드하나요", "プログラムは%sどうやって作りますか", "प्रोग्राम कैसे %s बनाएं", "สร้างโปรแกรม %s อย่างไร", "où est déployé %s le service",
}

// TestPromptsWithoutLatinLettersWereNoise: every letter but a Latin one was taken for padding.
func TestPromptsWithoutLatinLettersWereNoise(t *testing.T) {
	for _, word := range noiseSamples {
		for _, sentence := range realSentences {
			if s := strings.Replace(sentence, "%s", word, 1); IsNoise(s) {
				t.Errorf("%q is noise", s)
			}
		}
		for _, s := range []string{word, " " + word + "!!", "« " + word + " »", "　" + word + "。", word + " 👍🏽 ❤️", "— " + word + "…"} {
			if !IsNoise(s) {
				t.Errorf("%q is no noise", s)
			}
		}
	}
	for _, s := range []string{"负责支付的人是谁", "数据库的密码不在哪里", "周五可以部署吗", "请对比数据库方案", "值班手机好找吗", "как собрать модуль go", "部署", "密码?"} {
		if IsNoise(s) {
			t.Errorf("%q is noise", s)
		}
	}
	for _, s := range []string{"?????", "👍👍👍", "……！！", "测", "  　 "} {
		if !IsNoise(s) {
			t.Errorf("%q is no noise", s)
		}
	}
	for _, s := range []string{"我不 remember 这个函数的名字", "他说 important 这个标签没有用到", "我们的 warning 太多了不好看"} {
		if found := Find(s, false); len(found) != 0 {
			t.Errorf("%q is kept as %s: a trigger at the head of a sentence stands behind Chinese words", s, found[0].Class)
		}
	}
}

// TestAQuestionInChineseIsSearchedFor, and becomes the conversation's last prompt.
func TestAQuestionInChineseIsSearchedFor(t *testing.T) {
	w := newWorld(t)
	w.prompt("one", "负责支付的人是谁")
	w.hook(ClaudeCode, "SessionStart", `{"session_id":"one","source":"compact"}`)
	if want := []string{"负责支付的人是谁", "负责支付的人是谁"}; strings.Join(w.node.asked, "|") != strings.Join(want, "|") {
		t.Errorf("asked for %q", w.node.asked)
	}
}
