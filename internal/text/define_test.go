package text

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDefinitions(t *testing.T) {
	for s, want := range map[string][]string{
		"the service level objective (SLO) is 99.9 %":                       {"slo=service level objective"},
		"our SLO (service level objective) is 99.9 %":                       {"slo=service level objective"},
		"internationalisation (i18n) is for later":                          {"i18n=internationalisation"},
		"internationalization (i18n) is for later":                          {"i18n=internationalization"},
		"we use Postgres (PG) and Kubernetes (K8s)":                         {"pg=postgres", "k8s=kubernetes"},
		"Project Phoenix (PHX) ships in May. Customer Data Platform (CDP).": {"phx=phoenix", "cdp=customer data platform"},
		"it was late. order management system (OMS)":                        {"oms=order management system"},
		"Write-Ahead Log (WAL)":                                             {"wal=write ahead log"},
		"he said it (OK) and left":                                          nil,
		"the cat (a dog) and the Dog (Cat)":                                 nil,
		"at noon (UTC) it broke":                                            nil,
		"f(x) and g(AB), unclosed (SLO":                                     nil,
		"(SLO)":                                                             nil,
		"":                                                                  nil,
		"service level objective ((SLO))":                                   nil,
		"a single letter (A)":                                               nil,
	} {
		var got []string
		a := NewAnalysis(s)
		a.Definitions(func(short, long string) { got = append(got, short+"="+long) })
		if !slices.Equal(got, want) {
			t.Errorf("%q defines %q, want %q", s, got, want)
		}
	}
}

func TestDefinitionTerms(t *testing.T) {
	for i, term := range DefinitionTerms("slo", "service level objective") {
		name, other, ok := ParseDefinition(term)
		if want := [][2]string{{"slo", "service level objective"}, {"servic level object", "slo"}}[i]; !ok || name != want[0] || other != want[1] {
			t.Errorf("%q is %q, %q, %v", term, name, other, ok)
		}
		if first, rest, _ := strings.Cut(name, " "); !strings.HasPrefix(term, DefinitionPrefix(name)) || rest != "" && !strings.HasPrefix(term, LongerPrefix(first)) {
			t.Errorf("%q is not found by its name", term)
		}
		if len(Terms(term)) > 0 && slices.Contains(Terms(term), term) {
			t.Errorf("%q is a term of the analyzer", term)
		}
	}
	for _, term := range []string{"", "slo", "≡", "≡a≡b", "a≡b≡", "≡a≡b≡c≡"} {
		if _, _, ok := ParseDefinition(term); ok {
			t.Errorf("%q is a definition", term)
		}
	}
}

// FuzzDefinitions: terms are bounded, and the short name's letters stand in the long one.
func FuzzDefinitions(f *testing.F) {
	for _, s := range append(seeds, "service level objective (SLO)", "SLO (service level objective)", "(((A1B) ", "i18n (internationalization)", "Ünï Cödé (UC)") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a := NewAnalysis(s)
		n := 0
		a.Definitions(func(short, long string) {
			n++
			for _, term := range DefinitionTerms(short, long) {
				if name, other, ok := ParseDefinition(term); len(term) > maxTerm || !ok || name == "" || other == "" {
					t.Errorf("%q defines %q as %q: %q", s, short, long, term)
				}
			}
		})
		if n > strings.Count(s, "(") {
			t.Error(fmt.Sprintf("%q has %d definitions", s, n))
		}
	})
}

// TestManyParentheses: each byte of a text is looked at once. The bound is against hanging.
func TestManyParentheses(t *testing.T) {
	for _, s := range []string{strings.Repeat("(", 1<<19) + ")", strings.Repeat("(A B", 1<<17) + ")", strings.Repeat("a b (AB) ", 1<<16), strings.Repeat("AB (", 1<<17) + strings.Repeat(")", 1<<17)} {
		const bound = 20 * time.Second
		began := time.Now()
		a := Analysis{Text: s}
		a.Definitions(func(string, string) {})
		if took := time.Since(began); took > bound {
			t.Errorf("%.20q took %v", s, took)
		}
	}
}
