package text

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTerms(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"only space and signs", " \t\n --- ... !?", ""},
		{"stems and stop words", "The dogs were running in the parks", "dog run park"},
		{"possessive", "Caroline's dogs' toys", "carolin dog toy"},
		{"contractions", "I'm sure they don't, she'll wait, who's there", "sure wait"},
		{"typographic apostrophe", "I’m sure they don’t; Caroline’s cat", "sure carolin cat"},
		{"irregular verbs", "she went and bought a book, wrote, taught", "go buy book write teach"},
		{"irregular nouns", "children women mice feet", "child woman mous foot"},
		{"names in capitals that look like stop words", "the US and IT and WHO, us and it and who", "us it who"},
		{"month that looks like a verb", "May 2023", "may 2023"},
		{"accents", "Café naïve Ångström Łódź Straße Ærø cœur", "cafe naiv angstrom lodz strass aero coeur"},
		{"decomposed accents equal composed", "Cafe\u0301 na\u0131\u0308ve", "cafe naiv"},
		{"ligature and full width", "ﬁnal ＡＢＣ１２", "final abc12"},
		{"greek", "ΑΘΉΝΑ Ὀδυσσεύς", "αθηνα οδυσσευσ"},
		{"cyrillic keeps its marks", "Мой ёж", "мой ёж"},
		{"hindi keeps its vowels", "हिन्दी", "हिन्दी"},
		{"arabic", "مرحـبا بالعالم", "مرحبا بالعالم"},
		{"numbers", "1,000 3.14 007 42", "1000 3.14 007 42"},
		{"padded number", "at 09:05", "9 5"},
		{"ordinal", "the 8th and 21st", "8th 8 21st 21"},
		{"unit", "5km 10am 3.5kg", "5km 5 km 10am 10 3.5kg"},
		{"hash stays whole", "commit a3f9c2d1b", "commit a3f9c2d1b"},
		{"snake case", "max_open_files", "max_open_files max open file"},
		{"dunder", "__init__ foo__bar", "init foo__bar foo bar"},
		{"camel case", "parseHTTPRequest", "parsehttprequest pars http request"},
		{"plural acronym", "APIs PDFs", "api pdfs"},
		{"model name", "gpt4 and GPT-4", "gpt4 gpt 4 gpt-4 gpt 4"},
		{"hyphens without digits", "well-known state-of-art", "well know state art"},
		{"path", "internal/text/chunk.go", "internal/text/chunk.go intern text chunk go"},
		{"windows path", `C:\Users\ann`, `c:\users\ann c user ann`},
		{"url", "see https://example.com/foo_bar?x=1.", "see example.com/foo_bar?x=1 https exampl com foo bar x 1"},
		{"e-mail", "<jon.smith@example.com>", "jon.smith@example.com jon smith exampl com"},
		{"namespace", "std::vector pkg.Func", "std::vector std vector pkg.func pkg func"},
		{"languages", "C++ C# Go F#", "c c++ c c# go f f#"},
		{"version", "v1.2.3", "v1.2.3 v1 1 2.3"},
		{"missing space after a sentence", "the end...start (a)", "end start"},
		{"iso date", "on 2023-05-08 and 2023/05/08", "2023-05-08 2023 may 8 2023-05-08 2023 may 8"},
		{"time stamp", "2023-05-08T10:30:00Z", "2023-05-08 2023 may 8 10 30 00z 0"},
		{"no date", "2023-13-08 2023-05-99", "2023-13-08 2023 13 8 2023-05-99 2023 5 99"},
		{"chinese", "我的猫很可爱。", "我的 的猫 猫很 很可 可爱"},
		{"single character", "猫", "猫"},
		{"chinese with latin", "使用config.yaml文件", "使用 config.yaml config yaml 文件"},
		{"chinese date", "2024年5月1日开会", "2024 2024年 5 5月 may 1 1日 日开 开会"},
		{"japanese", "東京タワーへ行く", "東京 京タ タワ ワー ーへ へ行 行く"},
		{"half-width katakana", "ｶﾞｷﾞ", "ガギ"},
		{"katakana with middle dot", "ジョン・スミス", "ジョ ョン スミ ミス"},
		{"korean", "한국어 공부", "한국 국어 공부"},
		{"decomposed hangul equals composed", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국"},
		{"korean particle on a latin word", "NATS는 5월", "nat 는 5 5월 may"},
		{"thai marks stay with their letters", "สวัสดี", "สวั วัส สดี"},
		{"supplementary ideographs", "𠮷野家", "𠮷野 野家"},
		{"emoji", "great 👍🏽 ❤️ 👩‍💻 🇩🇪", "great 👍 ❤ 👩‍💻 🇩🇪"},
		{"signs are no terms", "→ © ─── ™", ""},
		{"joined words outside ascii", "café.com naïve_mode", "cafe.com cafe com naive_mode naiv mode"},
		{"invalid bytes", "good\xff\xfebad \xc3", "good bad"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(Terms(test.in), " "); got != test.want {
				t.Errorf("Terms(%q)\n got %s\nwant %s", test.in, got, test.want)
			}
		})
	}
}

func TestQueriesMeetTexts(t *testing.T) {
	tests := []struct{ query, text string }{
		{"http server", "we rewrote HTTPServer"},
		{"httpserver", "we rewrote HTTPServer"},
		{"max open files", "set max_open_files=10"},
		{"smith", "mail jon.smith@example.com"},
		{"chunk.go", "see chunk.go: it panics"},
		{"May 2023", "met on 2023-05-08"},
		{"5月", "on 2023-05-08 we met in May 5月"},
		{"on 8 May", "the 8th of May"},
		{"cafe", "the Café was closed"},
		{"deploy", "deploys happen on Tuesdays"},
		{"猫很", "我的猫很可爱"},
		{"👍", "done 👍🏿"},
	}
	for _, test := range tests {
		have := map[string]bool{}
		for _, term := range Terms(test.text) {
			have[term] = true
		}
		for _, term := range Terms(test.query) {
			if !have[term] {
				t.Errorf("query %q: term %q not in %q (%v)", test.query, term, test.text, Terms(test.text))
			}
		}
	}
}

func TestPositionsAndOffsets(t *testing.T) {
	s := "The HTTPServer in my_file.go, 我的猫"
	var got []string
	AnalyzeWords(s, func(w Word) bool {
		got = append(got, fmt.Sprintf("%d:%s=%s/%d", w.Pos, w.Term, s[w.Start:w.End], w.Kind))
		return true
	})
	want := "0:the=The/5 1:httpserver=HTTPServer/0 1:http=HTTP/0 2:server=Server/0 3:in=in/5 " +
		"4:my_file.go=my_file.go/2 4:my=my/5 5:file=file/0 6:go=go/0 7:我的=我的/3 8:的猫=的猫/3"
	if g := strings.Join(got, " "); g != want {
		t.Errorf("\n got %s\nwant %s", g, want)
	}
}

func TestAnalyzeStops(t *testing.T) {
	for _, s := range []string{"one two three", "我的猫很可爱", "a/b/c/d one", "👍 👍 👍", "café tôt éa", "2023-05-08", "aB1cDe fooBarBaz"} {
		all := Terms(s)
		for n := 1; n <= len(all); n++ {
			calls := 0
			Analyze(s, func(Token) bool { calls++; return calls < n })
			if calls != n {
				t.Errorf("%q: %d calls after asking to stop at %d", s, calls, n)
			}
		}
	}
}

func TestLongTermsAreBounded(t *testing.T) {
	for _, s := range []string{
		strings.Repeat("x", 10_000), strings.Repeat("é", 10_000), strings.Repeat("a_", 10_000), strings.Repeat("9", 500),
		"猫" + strings.Repeat("\u0301", 10_000), "👩" + strings.Repeat("\u200d👩", 1000),
	} {
		Analyze(s, func(tok Token) bool {
			if len(tok.Term) > maxTerm || !utf8.ValidString(tok.Term) {
				t.Errorf("%.20q…: term of %d bytes", s, len(tok.Term))
			}
			return true
		})
	}
}

func TestAnalyzeIsSafeForConcurrentUse(t *testing.T) {
	texts := []string{"The quick brown foxes jumped over lazy dogs", "running runners ran Café", "我的猫 dogs 2023-05-08"}
	want := make([]string, len(texts))
	for i, s := range texts {
		want[i] = strings.Join(Terms(s), " ")
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := range 500 {
				// Fresh words keep replacing what others read from the memo.
				Terms(fmt.Sprintf("word%dx%d fillings%d", w, n, n*w))
				i := n % len(texts)
				if got := strings.Join(Terms(texts[i]), " "); got != want[i] {
					t.Errorf("got %s, want %s", got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

func TestDateTerms(t *testing.T) {
	at := time.Date(2023, time.May, 8, 13, 56, 0, 0, time.UTC)
	if got, want := strings.Join(DateTerms(at), " "), "2023 may 8 2023-05-08 2023-05 monday"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	queries := []string{"May 2023", "on 8 May", "8th of May, 2023", "2023-05-08", "Monday", "5月", "8 May", "2023-05"}
	for m := time.January; m <= time.December; m++ {
		at := time.Date(2024, m, 29, 0, 0, 0, 0, time.UTC)
		for _, query := range []string{at.Format("January 2006"), at.Format("2 January"), at.Format("2006-01-02"), at.Weekday().String()} {
			requireTerms(t, query, DateTerms(at))
		}
	}
	for _, query := range queries {
		have := DateTerms(at)
		hit := false
		for _, q := range Terms(query) {
			for _, h := range have {
				hit = hit || q == h
			}
		}
		if !hit {
			t.Errorf("query %q has none of %v", query, have)
		}
	}
}

func requireTerms(t *testing.T, query string, have []string) {
	t.Helper()
	set := map[string]bool{}
	for _, h := range have {
		set[h] = true
	}
	for _, q := range Terms(query) {
		if !set[q] {
			t.Errorf("query %q: %q not in %v", query, q, have)
		}
	}
}

func TestAnalyzeTagAndURI(t *testing.T) {
	tests := []struct{ got, want []string }{
		{AnalyzeTag(" On-Call Rota "), []string{"on-call rota", "call", "rota"}},
		{AnalyzeTag("Café"), []string{"cafe"}},
		{AnalyzeTag("  "), nil},
		{AnalyzeTag(strings.Repeat("é", 100))[:1], []string{strings.Repeat("e", 100)}},
		{AnalyzeURI("mem://team-a/Projects/my_notes.md"),
			[]string{"team-a", "projects", "my_notes.md", "team", "project", "note", "md", "my_notes"}},
		{AnalyzeURI("mem://a/ /100%zz"), []string{"a", "100%zz", "100", "zz"}},
		{AnalyzeURI(""), nil},
	}
	for i, test := range tests {
		if fmt.Sprint(test.got) != fmt.Sprint(test.want) {
			t.Errorf("%d: got %q, want %q", i, test.got, test.want)
		}
	}
}

func TestFoldIsIdempotent(t *testing.T) {
	for _, s := range []string{"Straße", "ΌΣΟΣ", "ǰ", "İstanbul", "ﬃ", "㎏", "ẛ̣", "Ǆ", "ᾳ", "\u0345α"} {
		if once := Fold(s); Fold(once) != once {
			t.Errorf("Fold(%q) = %q, folded again %q", s, once, Fold(once))
		}
	}
}
