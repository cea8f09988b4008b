package main

import (
	"archive/zip"
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// commit makes a git repository of files under mirrors.
func commit(t *testing.T, mirrors, name string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(mirrors, strings.ReplaceAll(name, "/", "+"), "repo")
	for path, data := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "x"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("no git: %v: %s", err, out)
		}
	}
}

func zipped(t *testing.T, name, data string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const markdownText = `---
title: "A page"
---
Intro with a [link](https://example.com) and ` + "`code`" + `. Second sentence here.

## Install <!-- x -->
* first item
* second item

` + "```sh\nnot read\n```" + `

| a | table |
|---|-------|
Underlined
==========
Last paragraph.
`

// TestCorpus reads one repository of each format and compares the corpus with
// testdata/corpus.txt.
func TestCorpus(t *testing.T) {
	mirrors := t.TempDir()
	add := func(s source, files map[string]string) source {
		s.licence = "test"
		commit(t, mirrors, s.repo, files)
		return s
	}
	list := []source{
		add(source{repo: "o/md", format: markdown, files: []string{"docs/*.md"}}, map[string]string{"docs/a/b.md": markdownText, "other.md": "no"}),
		add(source{repo: "o/two", format: parallel, from: "en/", to: "zh/"}, map[string]string{
			"en/a.md": "# Pods\n\nA pod runs containers.\n\n# Same\n\nOne.\n\nTwo words.", "zh/a.md": "# 容器组\n\n一个容器组运行若干个容器。它们共享网络。\n\n# 相同\n\n第一个和第二个合在一起的段落。",
			"en/b.md": "One line.", "zh/b.md": "这一行文字完全是中文，没有一个英文单词，所以足够长。"}),
		add(source{repo: "o/po", format: catalogue, files: []string{"*.po"}}, map[string]string{
			"a.po": "msgid \"\"\nmsgstr \"\"\n\"Language: zh\\n\"\n\n#: x\nmsgid \"Syntax \"\n\"Errors\"\nmsgstr \"语法错误\"\n\nmsgid \"More\"\nmsgstr \"更多内容\"\n"}),
		add(source{repo: "o/book", format: book, files: []string{"*.xhtml"}}, map[string]string{
			"chapter.xhtml": "<h2>I</h2><p>He said <i>yes</i>. She left the room.</p><p>“Why?”</p>", "colophon.xhtml": "<p>no</p>"}),
		add(source{repo: "o/wn", format: wordnet, files: []string{"*.yaml"}}, map[string]string{
			"noun.yaml": "0001-n:\n  definition:\n  - a small pet that\n    purrs\n  example:\n  - the cat slept\n  - a cat ran\n  ili: i1\n  members:\n  - cat\n  - house cat\n0002-n:\n  members:\n  - dog\n"}),
		add(source{repo: "o/tab", format: tabbed, files: []string{"*.txt"}}, map[string]string{"cmn.txt": "Hi.\t你好。\tCC-BY\nbad line\n"}),
		add(source{repo: "o/talk", format: dialogues, files: []string{"*.json", "*.zip"}}, map[string]string{
			"a.json":     `[{"utterances":[{"text":"Hello there"},{"text":"Hi"},{"text":"A tea please"},{"text":"Sure"}]},{"utterances":[{"text":"alone"}]}]`,
			"b.json":     `{"y":{"content":[{"message":"second"},{"message":"answer"}]},"x":{"content":[{"message":"first"},{"message":"reply"}]}}`,
			"c.json":     `[{"turns":[{"user_utterance":{"text":"book a table"}},{"system_utterance":{"text":"for how many"}}]}]`,
			"d.json":     `"neither"`,
			"e.json.zip": zipped(t, "e.json", `{"1":{"messages":[{"content":"你好，我想吃饭"},{"content":"好的，推荐一家"}]}}`)}),
		add(source{repo: "o/tsv", format: turns, files: []string{"*.tsv"}}, map[string]string{
			"a.tsv": "conversationId\tturn\tid\tutterance\tx\nc1\t0\tu\ti want cable\tO\nc1\t1\tu\tsure thing\tO\nc2\t0\tu\thi there\tO\n"}),
		add(source{repo: "o/cap", format: captions, files: []string{"*.txt"}}, map[string]string{"c.txt": "x#0\t一个男人和一个女人在厨房里\n"}),
		add(source{repo: "o/lex", format: lexicon, files: []string{"*.tab"}}, map[string]string{"w.tab": "1-n\tcmn:lemma\t导+水管\n# no\n"}),
		add(source{repo: "o/qa", format: questions, files: []string{"*.jsonl"}}, map[string]string{"q.jsonl": `{"question":"How many apples? Ann has two.","answer":"Two apples.\n#### 2"}` + "\n"}),
		add(source{repo: "o/old", format: bitext, files: []string{"*.txt"}, every: 2}, map[string]string{"a.txt": "第一句。\n\n第二句。\n", "b.txt": "不读"}),
	}
	var out, report bytes.Buffer
	if err := writeCorpus(mirrors, list, &out, &report); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(report.String(), "\n"); n != len(list) {
		t.Errorf("%d rows about %d sources", n, len(list))
	}
	golden := filepath.Join("testdata", "corpus.txt")
	if *rewrite {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the corpus differs from %s; see the difference after go test -rewrite:\n%s", golden, out.String())
	}
}

func TestMissingSources(t *testing.T) {
	mirrors := t.TempDir()
	commit(t, mirrors, "o/md", map[string]string{"a.md": "x"})
	for name, s := range map[string]source{
		"no repository": {repo: "o/none", files: []string{"*"}},
		"no commit":     {repo: "o/md", ref: "absent", files: []string{"*"}},
		"no files":      {repo: "o/md", files: []string{"*.po"}},
		"no partner":    {repo: "o/md", repoTo: "o/none", format: parallel},
	} {
		if err := writeCorpus(mirrors, []source{s}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFits(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		want          bool
	}{
		{"docs/*.md", "docs/a/b.md", true}, {"docs/*.md", "doc/a.md", false}, {"*/x/*.json", "a/x/b/c.json", true},
		{"*/x/*.json", "a/y/c.json", false}, {"README.md", "README.md", true}, {"README.md", "README.md.txt", false}, {"*", "", true},
	} {
		if got := fits(test.pattern, test.path); got != test.want {
			t.Errorf("%s on %s: %v", test.pattern, test.path, got)
		}
	}
}

// TestSources: every source names its licence, and no two read the same files.
func TestSources(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources() {
		if s.licence == "" || seen[s.repo] || s.format != parallel && len(s.files) == 0 {
			t.Errorf("source %s is incomplete or comes twice", s.repo)
		}
		seen[s.repo] = true
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"x"}, {"fit", "-dims", "33"}, {"fit", "-nonsense"}, {"corpus", "-mirrors", t.TempDir(), "-o", filepath.Join(t.TempDir(), "c")}, {"corpus", "-o", t.TempDir()}, {"fit", "-corpus", "absent"}} {
		if run(args) == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
