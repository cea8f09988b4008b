package redact

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

var rewrite = flag.Bool("rewrite", false, "write rules.go anew")

type gitleaks struct {
	Rules []struct {
		ID          string   `toml:"id"`
		Regex       string   `toml:"regex"`
		SecretGroup int      `toml:"secretGroup"`
		Entropy     float64  `toml:"entropy"`
		Keywords    []string `toml:"keywords"`
	} `toml:"rules"`
}

// generic is the one rule of gitleaks without a prefix or a name of a service: what it finds
// has to look random.
const generic = "generic-api-key"

var namedGroup = regexp.MustCompile(`\(\?P<\w+>`)

// generate writes gitleaks' table as Go. Rules about names of files have no pattern.
func generate(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/gitleaks.toml")
	if err != nil {
		t.Fatal(err)
	}
	var table gitleaks
	if err := toml.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString("// Code generated from testdata/gitleaks.toml by TestRulesAreThoseOfGitleaks. DO NOT EDIT.\n\npackage redact\n\n")
	b.WriteString("// rules are those of gitleaks, MIT licence, Copyright (c) 2019 Zachary Rice.\nvar rules = []rule{\n")
	n := 0
	for _, r := range table.Rules {
		if r.Regex == "" {
			continue
		}
		n++
		// A name tells what was found by which way; the secret is all that matched.
		r.Regex = namedGroup.ReplaceAllString(r.Regex, "(?:")
		if len(r.Keywords) == 0 {
			t.Errorf("%s has no words: it would be compiled for each text", r.ID)
		}
		for i, w := range r.Keywords {
			r.Keywords[i] = strings.ToLower(w)
		}
		slices.Sort(r.Keywords)
		fmt.Fprintf(&b, "\t{id: %q, words: []string{", r.ID)
		for i, w := range r.Keywords {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%q", w)
		}
		fmt.Fprintf(&b, "}, pattern: %s", literal(r.Regex))
		if r.SecretGroup > 0 {
			fmt.Fprintf(&b, ", group: %d", r.SecretGroup)
		}
		if r.ID == generic {
			fmt.Fprintf(&b, ", entropy: %v, unless: %s", r.Entropy, literal(`^[a-zA-Z_.-]+$`))
		}
		b.WriteString(", compiled: new(compiled)},\n")
	}
	b.WriteString("}\n")
	if n < 200 {
		t.Fatalf("only %d rules were read", n)
	}
	out, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func literal(s string) string {
	if strings.ContainsRune(s, '`') {
		return fmt.Sprintf("%q", s)
	}
	return "`" + s + "`"
}

func TestRulesAreThoseOfGitleaks(t *testing.T) {
	want := generate(t)
	if *rewrite {
		if err := os.WriteFile("rules.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("rules.go is not what testdata/gitleaks.toml makes: go test ./internal/redact -run TestRulesAreThoseOfGitleaks -rewrite")
	}
}

func TestEveryRuleCompiles(t *testing.T) {
	for _, table := range tables {
		for _, r := range table {
			re, err := regexp.Compile(r.pattern)
			if err != nil {
				t.Errorf("%s: %v", r.id, err)
				continue
			}
			if r.group > re.NumSubexp() {
				t.Errorf("%s has no group %d", r.id, r.group)
			}
		}
	}
}
