package text

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestCuts names the terms that Index gives beside those of Analyze.
func TestCuts(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"prose", "The dogs were running in the parks, 2 of them. 3, 4", ""},
		{"path", "see internal/store/memtable.go.", "memtable.go store/memtable.go"},
		{"long path", "/a/b/c/d/e/f.go", "f.go e/f.go d/e/f.go c/d/e/f.go"},
		{"windows path", `C:\Users\ann\notes.txt`, "notes.txt ann/notes.txt users/ann/notes.txt"},
		{"path outside ascii", "home/müller/datei.go", "mueller datei.go muller/datei.go"},
		{"file with line", "at store/memtable.go:42:7", "store/memtable.go memtable.go"},
		{"file with line, short", "file.go:42", "file.go"},
		{"hyphens in a file", "docs/rough-edges.md", "rough-edges.md"},
		{"snake case in a file", "cmd/user_profile.go user_profile.go", "user_profile user_profile.go user_profile"},
		{"dotted name", "com.example.app.Server", "app.server example.app.server"},
		{"name of two parts", "fmt.Println", ""},
		{"dotted tail of file", "app.test.ts", "test.ts"},
		{"colons", "std::chrono::system_clock", "system_clock chrono::system_clock"},
		{"version", "v1.29.4", "1.29 1.29.4"},
		{"plain version", "1.29.4", "1 1.29"},
		{"number with a point", "1.29", "1"},
		{"go", "go1.23", "1.23"},
		{"python", "python3.11", "3.11"},
		{"version behind a name", "kubernetes-1.29.4 foo@1.2.3", "1 1.29 1 1.2"},
		{"release candidate", "v2.0.0-rc.1", "2.0 2.0.0"},
		{"unit", "3.5kg", "3 3.5"},
		{"address", "10.0.3.7 and 10.0.3.7:8080 and 10.0.0.0/8", ""},
		{"many points", "1.2.3.4.5", ""},
		{"date", "2024.05.01 but 2023/05/08", "2024 2024.05"},
		{"camel case with number", "OAuth2 HTTPServer2 Server2", "oauth httpserver"},
		{"hexadecimal", "0xDEADBEEF", "deadbeef"},
		{"hash", "a3f9c2d1b 01J9ZQ8M3XEXAMPLE0000000000", ""},
		{"ticket", "INC-2081", ""},
		{"option", "git commit --no-verify -x --level=very-high", "no-verify"},
		{"hyphens", "well-known state-of-art a--b", ""},
		{"names with signs", "C++ C# F# .NET Node.js ASP.NET (.gitignore) x..net", ".net .gitignore"},
		{"method of a pointer", "store.(*Table).Get", ""},
		{"e-mail", "<jon.smith@mail.example.com>", "jon.smith mail.example.com example.com"},
		{"url", "https://docs.example.com:8080/v1/search-all?x=a.b.c#top", "docs.example.com example.com v1/search-all search-all b.c"},
		{"url of a host", "https://www.example.com/", "example.com"},
		{"git", "git@github.com:org/repo.git", "github.com"},
		{"umlauts", "Müller Größe Äpfel", "mueller groess aepfel"},
		{"decomposed umlaut", "Mu\u0308ller", "mueller"},
		{"accents have no digraph", "café Ångström Łódź", "angstroem"},
		{"yo", "ещё", "еще ещ"},
		{"russian", "новые книги", "нов книг"},
		{"chinese around a name", "升级到v1.29.4版本，见internal/store/memtable.go。", "1.29 1.29.4 memtable.go store/memtable.go"},
		{"only signs", "-- ... // :: @@ .", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			more := IndexTerms(test.in)
			for _, term := range Terms(test.in) {
				if i := slices.Index(more, term); i < 0 {
					t.Errorf("Index(%q) has no %q", test.in, term)
				} else {
					more = slices.Delete(more, i, i+1)
				}
			}
			if got := strings.Join(more, " "); got != test.want {
				t.Errorf("Index(%q) has beside the analyzer's terms\n got %s\nwant %s", test.in, got, test.want)
			}
		})
	}
}

// TestFormsMeet: a query of one form has a term of its own, whole, in a text of the
// other form.
func TestFormsMeet(t *testing.T) {
	tests := []struct{ query, term, text string }{
		{"memtable.go", "memtable.go", "panic in internal/store/memtable.go:42"},
		{"store/memtable.go", "store/memtable.go", "panic in internal/store/memtable.go:42"},
		{"memtable.go:17", "memtable.go", "internal/store/memtable.go is slow"},
		{"memtable", "memtabl", "internal/store/memtable.go is slow"},
		{"rough-edges.md", "rough-edges.md", "docs/rough-edges.md"},
		{"user_profile", "user_profile", "internal/user_profile.go"},
		{"users/ann", "ann", `C:\Users\ann`},
		{"v1.29.4", "1.29.4", "Kubernetes 1.29.4"},
		{"1.29.4", "1.29.4", "Kubernetes v1.29.4"},
		{"1.29", "1.29", "Kubernetes v1.29.4"},
		{"v1.29", "1.29", "Kubernetes 1.29.4"},
		{"kubernetes 1", "1", "kubernetes 1.29.4"},
		{"Go 1.23", "1.23", "built with go1.23"},
		{"Go 1.23", "go", "built with go1.23"},
		{"go1.23", "1.23", "built with Go 1.23"},
		{"Python 3.11", "3.11", "python3.11-venv"},
		{"python3.11", "python", "Python 3.11"},
		{"oauth", "oauth", "we use OAuth2"},
		{"OAuth2", "oauth", "we use oauth"},
		{"oauth2", "oauth2", "we use OAuth2"},
		{"userprofile", "userprofil", "class userProfile"},
		{"user profile", "profil", "class userProfile"},
		{"INC-2081", "inc-2081", "see INC-2081"},
		{"2081", "2081", "see INC-2081"},
		{"--no-verify", "no-verify", "use git commit --no-verify"},
		{"no-verify", "verifi", "use git commit --no-verify"},
		{"C++", "c++", "written in C++"},
		{"C#", "c#", "C#, mostly"},
		{".NET", ".net", "it runs on .NET"},
		{"Node.js", "node.js", "node.js 20"},
		{"jon.smith", "jon.smith", "mail jon.smith@example.com"},
		{"example.com", "example.com", "mail jon.smith@mail.example.com"},
		{"docs.example.com", "docs.example.com", "https://docs.example.com/v1/search?q=1"},
		{"v1/search", "v1/search", "https://docs.example.com/v1/search?q=1"},
		{"10.0.3.7", "10.0.3.7", "ssh 10.0.3.7"},
		{"deadbeef", "deadbeef", "at 0xDEADBEEF"},
		{"Mueller", "mueller", "Frau Müller"},
		{"Müller", "mueller", "Frau Mueller"},
		{"Muller", "muller", "Frau Müller"},
		{"еще", "еще", "ещё раз"},
		{"ещё", "еще", "еще раз"},
		{"книга", "книг", "новые книги"},
	}
	for _, test := range tests {
		if asked := IndexTerms(test.query); !slices.Contains(asked, test.term) {
			t.Errorf("query %q has no %q: %q", test.query, test.term, asked)
		}
		if have := IndexTerms(test.text); !slices.Contains(have, test.term) {
			t.Errorf("text %q has no %q: %q", test.text, test.term, have)
		}
	}
}

// TestGoldenIndexTerms is TestGoldenTerms for Index: these terms are rows.
func TestGoldenIndexTerms(t *testing.T) {
	h := sha256.New()
	for r := rune(1); r < 0x20000; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue
		}
		s := "x" + string(r) + "y1.2.3 " + string(r) + string(r)
		fmt.Fprintln(h, strings.Join(IndexTerms(s), " "))
	}
	for _, s := range append(seeds, englishText, chineseText) {
		fmt.Fprintln(h, strings.Join(IndexTerms(s), " "))
	}
	const want = "c2cff54e031ca5548b355efdddbabc3b"
	if got := hex.EncodeToString(h.Sum(nil)[:16]); got != want {
		t.Errorf("terms of the index have the fingerprint %s, want %s: rows that exist have the former ones, so raise the pipeline version", got, want)
	}
}

// TestIndexStops: Index stops where it is told to.
func TestIndexStops(t *testing.T) {
	const s = "Müller at internal/store/memtable.go:42 in v1.29.4, OAuth2"
	for n := 1; n <= len(IndexTerms(s)); n++ {
		got := 0
		Index(s, func(Token) bool { got++; return got < n })
		if got != n {
			t.Errorf("%d terms after stopping at %d", got, n)
		}
	}
}

func FuzzIndex(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Add("Müller ещё internal/store/memtable.go:42 v1.29.4 OAuth2 0xdeadbeef --no-verify https://a.b.c/d/e.f .net")
	f.Fuzz(func(t *testing.T, s string) {
		pos, n, size := 0, 0, 0
		Index(s, func(tok Token) bool {
			if tok.Start < 0 || tok.Start >= tok.End || tok.End > len(s) {
				t.Fatalf("%q: %q at %d..%d", s, tok.Term, tok.Start, tok.End)
			}
			if tok.Term == "" || len(tok.Term) > maxTerm {
				t.Fatalf("%q: term %q", s, tok.Term)
			}
			if utf8.ValidString(s) && (!utf8.ValidString(tok.Term) || !utf8.ValidString(s[tok.Start:tok.End])) {
				t.Fatalf("%q: term %q cuts a character", s, tok.Term)
			}
			if tok.Pos < pos {
				t.Fatalf("%q: position %d after %d", s, tok.Pos, pos)
			}
			pos, n, size = tok.Pos, n+1, size+len(tok.Term)
			return true
		})
		if n > maxCuts*len(s) {
			t.Fatalf("%q: %d terms of %d bytes", s, n, len(s))
		}
		terms := IndexTerms(s)
		for _, term := range Terms(s) {
			i := slices.Index(terms, term)
			if i < 0 {
				t.Fatalf("%q: the index lacks %q, or has it too late", s, term)
			}
			terms = terms[i+1:]
		}
	})
}

// TestOneLongName: the cuts look at each byte of a name a bounded number of times. The
// bound is against hanging, the longest text takes some 100 ms.
func TestOneLongName(t *testing.T) {
	for _, unit := range []string{"a/", "1.", "1.1a", "a.b:1", "::", "a@", "-x", "a1", "ü.", "ё", "x://", "1/", ".a", `\a`} {
		const bound = 20 * time.Second
		began, n := time.Now(), 0
		Index(strings.Repeat(unit, 1<<19/len(unit)), func(Token) bool {
			n++
			return n%1024 != 0 || time.Since(began) < bound
		})
		if took := time.Since(began); took >= bound {
			t.Errorf("%q: not done after %v, at term %d", unit, took, n)
		}
	}
}
