package local

import (
	"slices"
	"strings"
	"testing"

	"mneme/internal/embed/local/localtest"
)

// testTokenizer knows the pieces given, numbered as listed after the special ones.
func testTokenizer(t testing.TB, o tokenizerOptions, pieces ...string) (*wordpiece, []string) {
	t.Helper()
	all := append([]string{"[UNK]", "[CLS]", "[SEP]"}, pieces...)
	w, err := parseVocabulary([]byte(strings.Join(all, "\n")), o, len(all))
	if err != nil {
		t.Fatal(err)
	}
	return w, all
}

// TestWordPiece has cases whose pieces follow from the published rules of
// BertNormalizer, BertPreTokenizer and WordPiece.
func TestWordPiece(t *testing.T) {
	w, pieces := testTokenizer(t, tokenizerOptions{Lower: true, CJK: true},
		"hello", "##s", "un", "##aff", "##able", "cafe", "naive", "zazoc", "日", "本", "語", "テ", "##スト", "の", "!", ",", "'", "$", "don", "t", "a", "##a",
		"world", "##world", "ß", "σοφος", "istanbul", "i", "ᄒ", "##ᅡ", "##ᆫ", "—", "x", "##y", "h", "##e", "🦊", "##🦊", "[", "]", "sep", "㐂", "がく")
	for text, want := range map[string]string{
		"":                       "",
		"Hello, hellos!":         "hello , hello ##s !",
		"unaffable":              "un ##aff ##able",
		"unaffably":              "[UNK]", // one part is unknown, so is the word
		"Café CAFÉ cafe\u0301":   "cafe cafe cafe",
		"naïve":                  "naive",
		"ząŻÓć":                  "zazoc",
		"日本語":                    "日 本 語",
		"テスト":                    "テ ##スト",  // kana stay together
		"日のx":                    "日 [UNK]", // "のx" is one word, and no piece is "##x"
		"don't":                  "don ' t",
		"$x":                     "$ x",
		"hello\u00a0world":       "hello world",
		"hello\u3000world":       "hello world",
		"hello\u2028world":       "hello world",
		"hello\u200dworld":       "hello ##world", // joiners vanish
		"hel\x00lo":              "hello",
		"hel\u00adlo":            "hello",
		"x\ufffdy \xff hello":    "x ##y hello",
		"\thello\r\nworld\n":     "hello world",
		"hel\x0blo":              "hello", // a vertical tab is a control first
		"ß":                      "ß",
		"ΣΟΦΟΣ":                  "[UNK]", // the lower case of a final sigma is σ, as letters are folded one by one
		"İstanbul I":             "istanbul i",
		"한":                      "ᄒ ##ᅡ ##ᆫ",
		"x—y":                    "x — [UNK]",
		"he":                     "h ##e",
		"🦊🦊":                     "🦊 ##🦊",
		"[SEP]":                  "[ sep ]", // a text cannot end its own sequence
		"㐂":                      "㐂",
		"がく":                     "[UNK]", // its mark is stripped with the accents
		strings.Repeat("a", 100): "a" + strings.Repeat(" ##a", 99),
		strings.Repeat("a", 101): "[UNK]",
		"!!":                     "! !",
		"\u0301":                 "",
		"q hello":                "[UNK] hello",
	} {
		got := w.encode(nil, text, 1000)
		var names []string
		for _, id := range got[1 : len(got)-1] {
			names = append(names, pieces[id])
		}
		if joined := strings.Join(names, " "); joined != want || pieces[got[0]] != "[CLS]" || pieces[got[len(got)-1]] != "[SEP]" {
			t.Errorf("%.40q: %s, want %s", text, joined, want)
		}
	}
}

func TestWordPieceOptions(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		o          tokenizerOptions
		text, want string
	}{
		{tokenizerOptions{Lower: false, CJK: true}, "Café cafe", "Café cafe"},
		{tokenizerOptions{Lower: true, CJK: true, Strip: &no}, "Café cafe", "café cafe"},
		{tokenizerOptions{Lower: false, CJK: true, Strip: &yes}, "Café", "Cafe"},
		{tokenizerOptions{Lower: true, CJK: false}, "日本", "日本"},
		{tokenizerOptions{Lower: true, CJK: true, Strip: &no}, "İ", "i̇"},
	} {
		w, pieces := testTokenizer(t, c.o, "Café", "café", "cafe", "Cafe", "日", "本", "日本", "i̇")
		var names []string
		for _, id := range w.encode(nil, c.text, 100) {
			names = append(names, pieces[id])
		}
		if got := strings.Join(names[1:len(names)-1], " "); got != c.want {
			t.Errorf("%+v %q: %s, want %s", c.o, c.text, got, c.want)
		}
	}
}

// TestUncleaned: with clean off, white space in a word's normal form parts it.
func TestUncleaned(t *testing.T) {
	w, _ := testTokenizer(t, tokenizerOptions{Lower: true, CJK: true}, "a", "b")
	w.clean = false
	if got := w.encode(nil, "a\x0bb", 10); !slices.Equal(got, []int32{1, 3, 4, 2}) {
		t.Errorf("%v", got)
	}
}

func TestLimitCutsWithinWords(t *testing.T) {
	w, _ := testTokenizer(t, tokenizerOptions{Lower: true, CJK: true}, "a", "##a")
	for limit := 3; limit < 12; limit++ {
		got := w.encode(nil, "aaa aaa aaa", limit)
		if len(got) != min(limit, 11) || got[0] != 1 || got[len(got)-1] != 2 {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
}

// TestTokenizerFilesAgree: vocab.txt and tokenizer.json say the same.
func TestTokenizerFilesAgree(t *testing.T) {
	s := localtest.Tiny()
	a := mustLoad(t, s).tokenizer
	s.VocabularyFile = true
	b := mustLoad(t, s).tokenizer
	for _, text := range []string{"Hello, world", "unaffable 日本", "Texting"} {
		if x, y := a.encode(nil, text, 40), b.encode(nil, text, 40); !slices.Equal(x, y) {
			t.Errorf("%q: %v and %v", text, x, y)
		}
	}
	s.Cased = true
	c := mustLoad(t, s).tokenizer
	if x, y := b.encode(nil, "Hello", 40), c.encode(nil, "Hello", 40); slices.Equal(x, y) {
		t.Error("a cased model is not asked for case")
	}
}

func TestTokenizersThatAreNotRun(t *testing.T) {
	good := string(localtest.Tiny().Files()["tokenizer.json"])
	for name, c := range map[string]struct{ from, to, words string }{
		"not JSON":      {`{`, `[`, "not the JSON"},
		"BPE":           {`"type":"WordPiece","unk`, `"type":"BPE","unk`, `the tokenizer is "BPE"`},
		"normalizer":    {`"BertNormalizer"`, `"NFKC"`, "BertNormalizer"},
		"pre_tokenizer": {`"BertPreTokenizer"`, `"Whitespace"`, "BertPreTokenizer"},
		"no [CLS]":      {`"[CLS]"`, `"[cls]"`, "[CLS]"},
		"no unknown":    {`"unk_token":"[UNK]"`, `"unk_token":"?"`, "no piece ?"},
		"negative":      {`"[PAD]":0`, `"[PAD]":-1`, "number -1"},
		"too large":     {`"[PAD]":0`, `"[PAD]":9999`, "number 9999"},
		"list":          {`"vocab":{`, `"vocab":[{`, "not the JSON"},
		"string number": {`"[PAD]":0`, `"[PAD]":"0"`, "not the JSON"},
	} {
		bad := strings.Replace(good, c.from, c.to, 1)
		if bad == good {
			t.Fatalf("%s: nothing was replaced", name)
		}
		if w, err := parseTokenizer([]byte(bad), len(localtest.Tiny().Pieces)); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, %v", name, w != nil, err)
		}
	}
	for name, c := range map[string]struct{ text, words string }{
		"twice": {"[UNK]\n[CLS]\n[SEP]\na\na\n", "twice"},
		"long":  {"[UNK]\n[CLS]\n[SEP]\na\nb\nc\n", "more than the 5"},
		"empty": {"", "[CLS]"},
	} {
		if _, err := parseVocabulary([]byte(c.text), tokenizerOptions{}, 5); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzEncode: whatever the text, tokens are pieces, within the limit, between
// [CLS] and [SEP], and a prefix of what a larger limit gives.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "Hello, world", "Café 日本語 テスト", "\xff\xfe", "a\u0301\u200d👩🏽", strings.Repeat("ab", 70), "[SEP] [CLS]"} {
		f.Add(s, 5)
	}
	m := mustLoad(f, localtest.Tiny())
	size := len(localtest.Tiny().Pieces)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 3 + max(limit, 0)%60
		w := m.tokenizer
		got := w.encode(nil, text, limit)
		if len(got) < 2 || len(got) > limit || got[0] != w.cls || got[len(got)-1] != w.sep {
			t.Fatalf("%q at %d: %v", text, limit, got)
		}
		for _, id := range got {
			if id < 0 || int(id) >= size {
				t.Fatalf("%q: piece %d", text, id)
			}
		}
		more := w.encode([]int32{7}, text, limit+5)[1:]
		if !slices.Equal(got[:len(got)-1], more[:len(got)-1]) {
			t.Fatalf("%q: %v at %d, %v at %d", text, got, limit, more, limit+5)
		}
		if clean := w.encode(nil, strings.ToValidUTF8(text, ""), limit); !slices.Equal(got, clean) {
			t.Fatalf("%q: %v, without broken bytes %v", text, got, clean)
		}
	})
}
