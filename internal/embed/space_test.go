package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestSpaceGolden holds what is written in events: it must never change.
func TestSpaceGolden(t *testing.T) {
	nomic, _ := KnownPrefixes("nomic-embed-text")
	for _, c := range []struct {
		space    Space
		id, text string
	}{
		{Space{}, "7c9fa136d4413fa6", "none"},
		{Space{Provider: "builtin", Model: "hash", Dimensions: 384, Normalised: true, Version: 1}, "42ac31ad881b2b6f", "builtin/hash 384d v1"},
		{Space{Provider: "builtin", Model: "static-1", Dimensions: 384, Normalised: true, Version: 1}, "fcf74dbd69f86562", "builtin/static-1 384d v1"},
		{Space{Provider: "ollama", Model: "nomic-embed-text", Dimensions: 768, DocumentPrefix: nomic.Document, QueryPrefix: nomic.Query, Normalised: true, Version: 1},
			"988ff99a84e4184a", `ollama/nomic-embed-text 768d v1 doc="search_document: " query="search_query: "`},
		{Space{Provider: "openai", Model: "m", Dimensions: 5, Version: 2}, "8bde9bfe3d342511", "openai/m 5d v2 raw"},
	} {
		if got := c.space.ID(); got != c.id {
			t.Errorf("%v: id %s, want %s", c.space, got, c.id)
		}
		if got := c.space.String(); got != c.text {
			t.Errorf("reads %s, want %s", got, c.text)
		}
	}
}

func TestSpaceIDTellsFieldsApart(t *testing.T) {
	base := Space{Provider: "ab", Model: "c", Dimensions: 300, DocumentPrefix: "d", QueryPrefix: "e", Normalised: true, Version: 1}
	ids := map[string]string{}
	for name, change := range map[string]func(*Space){
		"base": func(*Space) {}, "provider": func(s *Space) { s.Provider, s.Model = "a", "bc" }, "model": func(s *Space) { s.Model = "x" },
		"dims": func(s *Space) { s.Dimensions = 301 }, "document": func(s *Space) { s.DocumentPrefix, s.QueryPrefix = "de", "" },
		"query": func(s *Space) { s.DocumentPrefix, s.QueryPrefix = "", "de" }, "raw": func(s *Space) { s.Normalised = false }, "version": func(s *Space) { s.Version = 2 },
	} {
		s := base
		change(&s)
		if other, taken := ids[s.ID()]; taken || len(s.ID()) != 16 {
			t.Errorf("%s has the id of %s", name, other)
		}
		ids[s.ID()] = name
	}
}

func TestSecret(t *testing.T) {
	var s Secret
	if !s.IsZero() || s.String() != "" || s.Reveal() != "" || s.scrub("a") != "a" || !NewSecret(" \n").IsZero() {
		t.Fatal("empty secret")
	}
	if err := json.Unmarshal([]byte(`"abc\n"`), &s); err != nil || s.Reveal() != "abc" {
		t.Fatal(s.Reveal(), err)
	}
	out, err := json.Marshal(map[string]any{"k": s})
	if string(out) != `{"k":"[redacted]"}` || err != nil {
		t.Fatalf("%s %v", out, err)
	}
	if got := fmt.Sprint(s) + s.LogValue().String(); got != redacted+redacted {
		t.Fatal(got)
	}
}

func TestErrorReadsWell(t *testing.T) {
	for want, e := range map[string]*Error{
		`ollama at http://h: model "x" not found; run: ollama pull x`: {Kind: ErrNoModel, Provider: "ollama", Endpoint: "http://h", Detail: `model "x" not found`, Hint: "run: ollama pull x", Index: -1},
		"embed: text 3: blank": {Kind: ErrBadInput, Detail: "blank", Index: 3},
		"openai: embedding provider unavailable: cause (retry after 1.5s)": {Kind: ErrUnavailable, Provider: "openai", Err: errors.New("cause"), RetryAfter: 1500 * time.Millisecond, Index: -1},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if Purpose(9).String() != "purpose(9)" || Document.String()+Query.String() != "documentquery" {
		t.Error("purposes")
	}
}
