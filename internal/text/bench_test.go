package text

import (
	"strings"
	"testing"
)

const englishText = "Caroline went to the LGBTQ support group on 8 May, 2023 and said that it was powerful. She's been " +
	"thinking about counseling certification, because people with similar stories need someone who listens. " +
	"Melanie painted a sunrise last year; her kids love camping in the mountains. They've registered for a " +
	"pottery workshop near the park, and the adoption agency will call back on Tuesday afternoon. Deployment " +
	"notes live in docs/deploy.md, the owner is ops@example.com, and max_open_files stays at 1,024 for now."

const chineseText = "我将要参加金融科技精英论坛。金融科技精英论坛的规模是三千人，地点是北京，主要内容是探讨金融科技发展趋势，" +
	"分享银行服务创新经验，促进业内精英交流合作。2024年4月1日，周一。模型艺术盛宴的主要内容是展示精选模型作品，交流制作技巧。"

func BenchmarkAnalyzeEnglish500(b *testing.B) { benchmarkAnalyze(b, englishText[:500]) }
func BenchmarkAnalyzeChinese(b *testing.B)    { benchmarkAnalyze(b, chineseText) }

func benchmarkAnalyze(b *testing.B, s string) {
	b.ReportAllocs()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Analyze(s, func(Token) bool { return true })
	}
}

func BenchmarkChunks(b *testing.B) {
	s := strings.Repeat(englishText+"\n\n", 100)
	b.ReportAllocs()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Chunks(s, 0, -1)
	}
}

func BenchmarkSnippet(b *testing.B) {
	s, query := strings.Repeat(englishText+"\n\n", 10), Terms("sunrise in the mountains")
	b.ReportAllocs()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Snippet(s, query, 300)
	}
}

// TestAnalyzeAllocatesLittle: words met before cost no memory.
func TestAnalyzeAllocatesLittle(t *testing.T) {
	s := englishText[:400]
	Terms(s)
	if n := testing.AllocsPerRun(50, func() { Analyze(s, func(Token) bool { return true }) }); n > 20 {
		t.Errorf("%v allocations for %d bytes of English", n, len(s))
	}
}

// BenchmarkIndexEnglish500 is what Index takes beyond the analysis.
func BenchmarkIndexEnglish500(b *testing.B) {
	a := NewAnalysis(englishText[:500])
	b.ReportAllocs()
	b.SetBytes(int64(len(a.Text)))
	for b.Loop() {
		a.Index(func(Token) bool { return true })
	}
}
