package query

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// TestOddQueries sends queries that nobody meant, in every mode: they are
// answered or refused with a typed error, and never take a record's place.
func TestOddQueries(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.chatter("team", 3)
	w.talk("team", "odd", [2]string{"ann", "SELECT * FROM users; -- 100% of .* (regex)"}, [2]string{"bob", "🚀🚀 launch day 发布日 запуск"}, [2]string{"ann", "what is it"})
	ctx := context.Background()
	for name, c := range map[string]struct {
		query string
		code  memory.Code // "" = it is answered
		first string      // text of the first result by text; "" = whatever
	}{
		"empty":           {"", memory.CodeInvalid, ""},
		"blank":           {" \t\n ", memory.CodeInvalid, ""},
		"too long":        {strings.Repeat("word ", 20480), memory.CodeTooLarge, ""},
		"not UTF-8":       {"a\xffb", memory.CodeInvalid, ""},
		"one stop word":   {"the", "", ""},
		"stop words":      {"what is it that you are", "", ""},
		"punctuation":     {"?!…—()[]{}*.*", "", ""},
		"NUL":             {"a\x00b", "", ""},
		"emoji":           {"🚀", "", "🚀🚀 launch day 发布日 запуск"},
		"emoji only":      {strings.Repeat("👩🏽‍🚀", 300), "", ""},
		"mixed scripts":   {"launch 发布日 запуск", "", "🚀🚀 launch day 发布日 запуск"},
		"regular expr":    {`^(a+)+$ .* (regex) \d{3,}`, "", "SELECT * FROM users; -- 100% of .* (regex)"},
		"SQL":             {"'; DROP TABLE users; --", "", "SELECT * FROM users; -- 100% of .* (regex)"},
		"one word often":  {strings.Repeat("weather ", 2000), "", ""},
		"very long word":  {strings.Repeat("a", 16000), "", ""},
		"many words":      {manyWords(2500), "", ""},
		"open quote":      {`"weather report`, "", ""},
		"empty quotes":    {`""`, "", ""},
		"quoted stop":     {`"the"`, "", ""},
		"thousand quotes": {strings.Repeat(`"a"`, 4000), "", ""},
		"date of no year": {"on 31 February 99999", "", ""},
		"right to left":   {"\u202eweather\u202c report", "", ""},
	} {
		for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				res, err := w.reader("team", "").Search(ctx, memory.SearchRequest{Query: c.query, Mode: mode, All: true, Explain: true})
				if c.code != "" {
					wantCode(t, err, c.code)
					return
				}
				if err != nil && (mode != memory.ModeVector || memory.CodeOf(err) != memory.CodeInvalid) {
					t.Fatal(err)
				}
				for _, h := range res.Results {
					if err := checkExplain(&h); err != nil {
						t.Error(err)
					}
				}
				if mode == memory.ModeText && c.first != "" && (len(res.Results) == 0 || res.Results[0].Text != c.first) {
					t.Errorf("%v", texts(res.Results))
				}
			})
		}
	}
}

func manyWords(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}

func TestLimitsAndFiltersAtTheirEdges(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for i := range memory.MaxLimit + 20 {
		w.One("team", "ann", fmt.Sprintf("weather report %d", i))
	}
	for limit, code := range map[int]memory.Code{0: memory.CodeInvalid, -1: memory.CodeInvalid, 1_000_000: memory.CodeInvalid, memory.MaxLimit + 1: memory.CodeInvalid} {
		_, err := w.reader("team", "").Search(context.Background(), memory.SearchRequest{Query: "weather", Limit: &limit})
		wantCode(t, err, code)
	}
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector} {
		for name, c := range map[string]struct {
			filter memory.Filter
			want   int
		}{
			"nothing":    {memory.Filter{Tags: []string{"none"}}, 0},
			"no agent":   {memory.Filter{Agents: []string{"nobody"}}, 0},
			"no time":    {memory.Filter{Until: ptr(time.Unix(0, 0))}, 0},
			"everything": {memory.Filter{Since: ptr(time.Unix(0, 0)), Agents: []string{"ann", "bob"}, Kinds: memory.Kinds}, memory.MaxLimit},
		} {
			res := w.search("team", "", memory.SearchRequest{Query: "weather report", Mode: mode, Filter: &c.filter, Limit: ptr(memory.MaxLimit)})
			if len(res.Results) != c.want {
				t.Errorf("%s, filter %s: %d results, want %d", mode, name, len(res.Results), c.want)
			}
		}
	}
}
