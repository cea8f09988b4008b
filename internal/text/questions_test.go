package text

import (
	"slices"
	"strings"
	"testing"
)

func TestAsides(t *testing.T) {
	for question, left := range map[string]string{
		"什么时候部署":                 "部署",
		"部署是什么时候？":               "部署",
		"部署在哪里":                  "部署",
		"谁维护支付服务":                "维护 护支 支付 付服 服务",
		"你叫什么名字？":                "你叫 名字",
		"王是谁":                    "王是",
		"周会是几点？":                 "周会",
		"日志保留多少天":                "日志 志保 保留",
		"搜索接口有没有限流吗？":            "搜索 索接 接口 限流",
		"哪怕一次":                   "哪怕 怕一 一次",
		"许多大公司":                  "许多 多大 大公 公司",
		"几乎没有":                   "几乎 乎没 没有",
		"吗啡":                     "吗啡",
		"什么":                     "",
		"デプロイはいつですか？":            "デプ プロ ロイ",
		"いつも同じ":                  "いつ つも も同 同じ",
		"どうやって直しますか":             "直し",
		"배포는 언제 합니까":             "배포 포는 합니 니까",
		"언제나 같다":                 "언제 제나 같다",
		"about deploys, perhaps": "deploy",
		"什么 deploys 呢？":          "deploy",
		"\xff什么\xff":             "",
		"":                       "",
	} {
		a, got := AsidesOf(question), []string{}
		Index(question, func(t Token) bool {
			if !a.Has(t) {
				got = append(got, t.Term)
			}
			return true
		})
		if !slices.Equal(got, strings.Fields(left)) {
			t.Errorf("%q is about %q, want %q", question, got, left)
		}
	}
}

func TestWithoutQuestionWords(t *testing.T) {
	for question, rest := range map[string]string{
		"今天天气怎么样": "今天天气 ", "请问部署是什么时候？": " 部署 ？", "什么时候？": "什么时候？", "哪怕一次": "哪怕一次", "when do we deploy": "when do we deploy",
		"배포는 언제": "배포는  ", "": "",
	} {
		if got := WithoutQuestionWords(question); got != rest {
			t.Errorf("%q became %q, want %q", question, got, rest)
		}
	}
	for question, want := range map[string]bool{"什么": true, "什么时候": true, "about": true, "the": true, "部署": false, "什么部署": false} {
		if got := IsAside(question); got != want {
			t.Errorf("%q is an aside: %v", question, got)
		}
	}
}

func FuzzAsides(f *testing.F) {
	f.Add("部署是什么时候？いつですか 언제")
	f.Fuzz(func(t *testing.T, question string) {
		a := AsidesOf(question)
		Index(question, func(t Token) bool { a.Has(t); return true })
		if rest := WithoutQuestionWords(question); strings.TrimSpace(rest) == "" && strings.TrimSpace(question) != "" {
			t.Errorf("nothing is left of %q", question)
		}
	})
}

// A question costs what its length is.
func BenchmarkAsidesOf(b *testing.B) {
	question := strings.Repeat("部署是什么时候", 16<<10/21)
	for b.Loop() {
		_ = AsidesOf(question)
	}
}
