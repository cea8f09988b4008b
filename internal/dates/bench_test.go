package dates

import (
	"strings"
	"testing"
)

var queries = map[string]string{
	"English": "What did Melanie and her family see during their camping trip in the week before 9 June, 2023 or last year?",
	"Chinese": "那个时间是下周四晚上七点的活动，和去年五月三号在上海的年度盛典，哪一个持续时间更长？",
	"None":    "What are the common responses when something goes wrong with an interface that the team talks to over HTTP?",
}

func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"English", "Chinese", "None"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(queries[name])))
			for b.Loop() {
				Parse(queries[name], reference())
			}
		})
		b.Run(name+"100KB", func(b *testing.B) {
			s := strings.Repeat(queries[name]+" ", 100<<10/len(queries[name]))
			b.ReportAllocs()
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				parse(s, reference(), len(s))
			}
		})
	}
}

func BenchmarkOverlap(b *testing.B) {
	q := Parse("in June", reference())[0]
	at := reference().AddDate(-3, 0, 0)
	b.ReportAllocs()
	for b.Loop() {
		Overlap(q, at)
	}
}
