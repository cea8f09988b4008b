package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// TestBadSearchesByREST: whatever is asked, there is an answer, or one clear problem, before long.
func TestBadSearchesByREST(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	d.capture("default", "the weather report of the north")
	var wrong strings.Builder
	for i := range 300 {
		fmt.Fprintf(&wrong, "w%cxth%cr%cq ", 'a'+i%26, 'a'+i/26, 'a'+i%7)
	}
	trace := strings.Repeat("panic: runtime error\n\ngoroutine 17 [running]:\nmain.(*serverr).handel(0xc000123456)\n\t/src/maim.go:42 +0x1b\n", 200)
	for name, c := range map[string]struct {
		query, with string
		code        memory.Code
	}{
		"one letter":            {"a", "", ""},
		"stars":                 {"* ** *a*", "", ""},
		"beginnings":            {"we* re* 北*", "", ""},
		"many beginnings":       {"aa* bb* cc* dd* ee* ff* gg* hh* ii*", "", ""}, // more than there may be: plain words
		"misspelt words":        {wrong.String(), "", ""},
		"a stack trace":         {trace[:memory.MaxQueryBytes], "", ""},
		"more than a query":     {trace[:memory.MaxQueryBytes+1], "", memory.CodeTooLarge},
		"base64":                {strings.Repeat("bm90aGluZyBoZXJl", 1000), "", ""},
		"mixed scripts":         {"weаther погода 天気 שלום नमस्ते 🚀", "", ""},
		"marks":                 {"\u200f\u202eweather\u202c\u200e", "", ""},
		"a dash":                {"-", "", ""},
		"an open quote":         {`"weather`, "", ""},
		"quoted stop words":     {`"to be or not to be"`, "", ""},
		"nothing":               {"", "", memory.CodeInvalid},
		"no budget":             {"weather", `,"budget":0`, memory.CodeInvalid},
		"a small budget":        {"weather", `,"budget":1`, ""},
		"the largest budget":    {"weather", `,"budget":10000000`, ""},
		"beyond it":             {"weather", `,"budget":10000001`, memory.CodeInvalid},
		"a budget of a half":    {"weather", `,"budget":0.5`, memory.CodeInvalid},
		"the highest floor":     {"weather", `,"min_score":1`, ""},
		"a floor above":         {"weather", `,"min_score":1.0001`, memory.CodeInvalid},
		"a floor of words":      {"weather", `,"min_score":"high"`, memory.CodeInvalid},
		"a floor beyond floats": {"weather", `,"min_score":1e999`, memory.CodeInvalid},
	} {
		query, err := json.Marshal(c.query)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		status, body := d.call("POST", "/v1/namespaces/default/search", `{"query":`+string(query)+c.with+`}`)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		if c.code != "" {
			t.Run(name, func(t *testing.T) { refusedREST(t, status, body, c.code) })
			continue
		}
		var res memory.SearchResponse
		if err := json.Unmarshal([]byte(body), &res); status != http.StatusOK || err != nil || res.Results == nil {
			t.Errorf("%s: %d %.200s %v", name, status, body, err)
		}
	}
}
