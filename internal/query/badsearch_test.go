package query

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// badQueries are what nobody should ask.
func badQueries() map[string]string {
	rng := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 12<<10)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	var wrong, beginnings strings.Builder
	for i := range 300 {
		fmt.Fprintf(&wrong, "w%cxth%cr%cq ", 'a'+i%26, 'a'+i/26, 'a'+i%7)
	}
	for i := range 8 {
		fmt.Fprintf(&beginnings, "%c%c* ", 'a'+i, 'a'+i)
	}
	trace := strings.Repeat("panic: runtime error\n\ngoroutine 17 [running]:\nmain.(*serverr).handel(0xc000123456, {0x1, 0x2})\n\t/src/maim.go:42 +0x1b\n", 200)
	return map[string]string{
		"one letter":                  "a",
		"one Han character":           "数",
		"a digit":                     "7",
		"a star":                      "*",
		"stars":                       "* ** *** *a* *",
		"many stars":                  strings.Repeat("*", 8<<10),
		"beginnings":                  beginnings.String(),
		"beginnings of all":           "we* re* in* th* on* of* to* an*",
		"misspelt words":              wrong.String(),
		"a stack trace":               trace[:memory.MaxQueryBytes],
		"base64":                      base64.StdEncoding.EncodeToString(noise)[:memory.MaxQueryBytes],
		"base64 in one line of words": strings.ReplaceAll(base64.StdEncoding.EncodeToString(noise), "a", " "),
		"mixed scripts":               "weаther погода 天気 τιμή שלום سلام नमस्ते 🚀 we\u200dather",
		"marks":                       "\u200f\u202eweather\u202c\u200e \u2066report\u2069 \ufeff",
		"only marks":                  "\u200f\u202e\u202c\ufeff",
		"a dash":                      "-",
		"dashes":                      strings.Repeat("- ", 4<<10),
		"left out alone":              "-weather -report",
		"an open quote":               `"weather`,
		"open quotes":                 strings.Repeat(`"“„«「 weather `, 300),
		"empty quotes":                `"" "" “”`,
		"quoted stop words":           `"to be or not to be" "the"`,
		"quoted signs":                `"?!" "--" "*"`,
		"combining":                   strings.Repeat("a\u0301\u0302\u0303", 1000),
		"joints":                      strings.Repeat("a.b-c/", 2000),
		"a long beginning":            strings.Repeat("ab", 7000) + "*",
		"a long phrase":               `"` + strings.Repeat("weather ", 1800) + `"`,
	}
}

// TestBadSearches: each ends with an answer, or with one error that says what is wrong, before
// long, whatever it asks of the answer.
func TestBadSearches(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.chatter("team", 3)
	for i := range 200 {
		w.One("team", "ann", fmt.Sprintf("weather report %d of the %dth station in the north", i, i))
	}
	type asked struct {
		with string // fields of the request
		code memory.Code
	}
	for _, a := range []asked{{`{}`, ""}, {`{"mode":"text","explain":true}`, ""}, {`{"mode":"vector"}`, ""}, {`{"budget":1}`, ""}, {`{"budget":10000000,"limit":200}`, ""}, {`{"min_score":1}`, ""},
		{`{"max_text":1,"limit":1}`, ""}, {`{"budget":0}`, memory.CodeInvalid}, {`{"budget":10000001}`, memory.CodeInvalid}, {`{"min_score":1.01}`, memory.CodeInvalid}, {`{"min_score":1e300}`, memory.CodeInvalid},
		{`{"min_score":-0.1}`, memory.CodeInvalid}, {`{"limit":0}`, memory.CodeInvalid}} {
		for name, query := range badQueries() {
			var req memory.SearchRequest
			w.OK(json.Unmarshal([]byte(a.with), &req))
			req.Query = query
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			res, err := w.reader("team", "").Search(ctx, req)
			cancel()
			switch code := memory.CodeOf(err); {
			case a.code != "":
				wantCode(t, err, a.code)
			case err != nil && (code != memory.CodeInvalid || strings.TrimSpace(memory.AsError(err).Message) == ""):
				t.Errorf("%s %s: %v", name, a.with, err)
			case err == nil && res.Results == nil:
				t.Errorf("%s %s: neither results nor an error", name, a.with)
			}
			if len(res.Corrections) > (maxCorrected+8)*(maxTold+1)+1 {
				t.Errorf("%s %s: %d corrections", name, a.with, len(res.Corrections))
			}
		}
	}
}

// FuzzSearch asks a small namespace whatever there is, words, phrases and beginnings.
func FuzzSearch(f *testing.F) {
	for _, q := range badQueries() {
		f.Add(q)
	}
	w := newWorld(f)
	w.Namespace("team", nil)
	for _, s := range []string{"Kubernetes upgrades happen on Tuesdays", "the harbour crane stood still", "развёртывание идёт", "数据库已满", "10.0.3.7 and v1.29.4", "user_profile is cached"} {
		w.One("team", "ann", s)
	}
	r := w.reader("team", "")
	f.Fuzz(func(t *testing.T, query string) {
		res, err := r.Search(context.Background(), memory.SearchRequest{Query: query, Mode: memory.ModeText})
		if code := memory.CodeOf(err); err != nil && code != memory.CodeInvalid && code != memory.CodeTooLarge {
			t.Fatal(err)
		}
		for _, c := range res.Corrections {
			if c.Word == "" || c.ReadAs == "" && c.Kind != string(kindMany) {
				t.Errorf("%q: %+v", query, c)
			}
		}
	})
}
