package main

import (
	"encoding/csv"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Texts as agents and teams write them: commit messages, comments of code, minutes of
// meetings, requests.

// history pairs the subject of each commit with its body and with the files that it
// changed. Commits of programs and merges are left out, and what lies behind an object
// that the copy lacks.
func (c *corpusWriter) history(r repository) error {
	out, err := exec.Command("git", "-C", r.dir, "log", "--no-merges", "--name-only", "--format=%x01%an%x02%s%x02%b%x02", r.commit).Output()
	if err != nil && len(out) == 0 {
		return err
	}
	for entry := range strings.SplitSeq(string(out), "\x01") {
		parts := strings.SplitN(entry, "\x02", 4)
		if len(parts) != 4 || strings.Contains(parts[0], "[bot]") || robotic.MatchString(parts[1]) {
			continue
		}
		subject := plain(requestNumber.ReplaceAllString(parts[1], ""))
		if !hasLetters(subject) || strings.Count(subject, " ") < 2 {
			continue
		}
		c.text(subject)
		body := message(parts[2])
		if len(body) > 0 {
			c.pair("commit", subject, strings.Join(body, " "))
		}
		for i, p := range body {
			c.text(p)
			if i > 0 {
				c.pair("next", body[i-1], p)
			}
			c.neighbours(p)
		}
		if files := strings.Fields(parts[3]); len(files) > 0 && len(files) <= 3 {
			for i, f := range files {
				files[i] = path.Join(path.Base(path.Dir(f)), path.Base(f))
			}
			c.pair("change", subject, strings.Join(files, " "))
		}
	}
	return nil
}

var (
	robotic       = regexp.MustCompile(`(?i)^(merge|revert|bump|update module|chore\(deps|build\(deps|dependency|release v?\d)`)
	requestNumber = regexp.MustCompile(`\(?#\d+\)?`)
	trailer       = regexp.MustCompile(`(?im)^([a-z][a-z-]+-by|co-authored-by|change-id|reviewed-on|tryBot-result|reviewed-by|auto-submit|fixes|closes|updates|for|see|ref|pr|issue):? .*$`)
)

// message returns the paragraphs of a commit's body without what is for machines.
func message(s string) []string {
	var out []string
	for _, b := range markdownBlocks(trailer.ReplaceAllString(s, "")) {
		if strings.Count(b.text, " ") >= 3 {
			out = append(out, requestNumber.ReplaceAllString(b.text, ""))
		}
	}
	return out
}

// godoc pairs the names that a Go file declares with their comments.
func (c *corpusWriter) godoc(f file) {
	if strings.Contains(f.path, "/testdata/") || strings.HasPrefix(f.path, "vendor/") || strings.HasSuffix(f.path, ".pb.go") {
		return
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", f.data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return
	}
	add := func(name, of string, doc *ast.CommentGroup) {
		if doc == nil || len(doc.Text()) < 20 {
			return
		}
		body := strings.TrimSpace(spaces.ReplaceAllString(doc.Text(), " "))
		c.text(body)
		c.neighbours(body)
		without := strings.TrimSpace(strings.TrimPrefix(body, name))
		if of != "" {
			name = of + "." + name
		}
		c.pair("declared", name, without)
	}
	if file.Doc != nil {
		body := strings.TrimSpace(spaces.ReplaceAllString(file.Doc.Text(), " "))
		c.pair("declared", file.Name.Name+" "+path.Base(f.path), strings.TrimPrefix(body, "Package "+file.Name.Name+" "))
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			of := ""
			if d.Recv != nil && len(d.Recv.List) == 1 {
				t := d.Recv.List[0].Type
				if p, ok := t.(*ast.StarExpr); ok {
					t = p.X
				}
				if id, ok := t.(*ast.Ident); ok {
					of = id.Name
				}
			}
			add(d.Name.Name, of, d.Doc)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					doc := s.Doc
					if doc == nil {
						doc = d.Doc
					}
					add(s.Name.Name, "", doc)
					if t, ok := s.Type.(*ast.StructType); ok {
						for _, field := range t.Fields.List {
							if len(field.Names) > 0 {
								add(field.Names[0].Name, s.Name.Name, field.Doc)
							}
						}
					}
				case *ast.ValueSpec:
					doc := s.Doc
					if doc == nil && len(d.Specs) == 1 {
						doc = d.Doc
					}
					add(s.Names[0].Name, "", doc)
				}
			}
		}
	}
}

// meetings reads QMSum: minutes of meetings with questions about them.
func (c *corpusWriter) meetings(data []byte) error {
	for line := range strings.SplitSeq(string(data), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		type asked struct{ Query, Answer string }
		var m struct {
			General  []asked                             `json:"general_query_list"`
			Specific []asked                             `json:"specific_query_list"`
			Turns    []struct{ Speaker, Content string } `json:"meeting_transcripts"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return err
		}
		for _, q := range m.Specific {
			c.text(q.Query)
			c.text(q.Answer)
			c.pair("answer", q.Query, q.Answer)
			c.neighbours(q.Answer)
		}
		var turns []string
		for _, t := range m.Turns {
			if s := strings.TrimSpace(spaces.ReplaceAllString(noise.ReplaceAllString(t.Content, ""), " ")); len(s) > 20 {
				turns = append(turns, s)
			}
		}
		c.conversation(turns)
	}
	return nil
}

var noise = regexp.MustCompile(`\{[a-z]+\}`)

// intents pairs requests that want one thing: CSV of text and intent, with one of two
// layouts, or JSON of lists of both.
func (c *corpusWriter) intents(f file) error {
	by := map[string][]string{}
	add := func(text, intent string) {
		if text = strings.TrimSpace(text); text != "" && intent != "" && intent != "oos" && intent != "category" {
			by[intent] = append(by[intent], text)
		}
	}
	if strings.HasSuffix(f.path, ".json") {
		var lists map[string][][2]string
		if err := json.Unmarshal(f.data, &lists); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(lists)) {
			for _, e := range lists[name] {
				add(e[0], e[1])
			}
		}
	} else {
		r := csv.NewReader(strings.NewReader(string(f.data)))
		r.LazyQuotes, r.FieldsPerRecord = true, -1
		if strings.HasPrefix(string(f.data), "userid;") {
			r.Comma = ';'
		}
		for {
			rec, err := r.Read()
			if err != nil {
				break
			}
			switch {
			case len(rec) == 2:
				add(rec[0], rec[1])
			case len(rec) >= 10:
				add(rec[9], rec[2]+"/"+rec[3])
			}
		}
	}
	// Side by side in the corpus stand pairs of different intents, so that a batch of
	// neighbours is none of one intent.
	names := slices.Sorted(maps.Keys(by))
	for i, more := 1, true; more; i++ {
		more = false
		for _, name := range names {
			if i < len(by[name]) {
				more = true
				c.text(by[name][i])
				c.pair("intent", by[name][i-1], by[name][i])
			}
		}
	}
	return nil
}

// teams are sources of texts as people write them who build something together. The
// shipped weights were made without them (docs/model-card.md says why).
func teams() []source {
	list := []source{
		{repo: "18F/handbook", licence: "CC0-1.0", format: markdown, files: []string{"*.md"}},
		{repo: "basecamp/handbook", licence: "CC BY 4.0", format: markdown, files: []string{"*.md"}},
		{repo: "google/eng-practices", licence: "CC BY 3.0", format: markdown, files: []string{"review/*.md"}},
		{repo: "nodejs/TSC", licence: "MIT", format: markdown, files: []string{"meetings/*.md", "*.md"}},
		{repo: "kubernetes/community", licence: "Apache-2.0", format: markdown, files: []string{"*.md"}},
		{repo: "rust-lang/rfcs", licence: "MIT or Apache-2.0", format: markdown, files: []string{"text/*.md"}},
		{repo: "rust-lang/blog.rust-lang.org", licence: "MIT or Apache-2.0", format: markdown, files: []string{"content/*.md"}},
		{repo: "swiftlang/swift-evolution", licence: "Apache-2.0", format: markdown, files: []string{"proposals/*.md"}},
		{repo: "golang/proposal", licence: "BSD-3-Clause", format: markdown, files: []string{"design/*.md"}},
		{repo: "Yale-LILY/QMSum", licence: "MIT", format: meetings, files: []string{"data/ALL/jsonl/*.jsonl", "data/Product/jsonl/train.jsonl", "data/Academic/jsonl/train.jsonl", "data/Committee/jsonl/train.jsonl"}},
		{repo: "clinc/oos-eval", licence: "CC BY 3.0", format: intents, files: []string{"data/data_full.json"}},
		{repo: "PolyAI-LDN/task-specific-datasets", licence: "CC BY 4.0", format: intents, files: []string{"banking_data/train.csv"}},
	}
	for _, name := range []string{"etcd-io/etcd", "nats-io/nats-server", "prometheus/prometheus", "grpc/grpc-go", "caddyserver/caddy"} {
		list = append(list, source{repo: name, licence: "Apache-2.0", format: godoc, files: []string{"*.go"}},
			source{repo: name, licence: "Apache-2.0", format: history},
			source{repo: name, licence: "Apache-2.0", format: markdown, files: []string{"*.md"}})
	}
	for _, name := range []string{"golang/tools", "cockroachdb/pebble"} {
		list = append(list, source{repo: name, licence: "BSD-3-Clause", format: godoc, files: []string{"*.go"}},
			source{repo: name, licence: "BSD-3-Clause", format: history})
	}
	for _, s := range []source{{repo: "kubernetes/enhancements", licence: "Apache-2.0"}, {repo: "ant-design/ant-design", licence: "MIT"},
		{repo: "apache/apisix", licence: "Apache-2.0"}, {repo: "tldr-pages/tldr", licence: "CC BY 4.0"}} {
		s.format = history
		list = append(list, s)
	}
	return list
}
