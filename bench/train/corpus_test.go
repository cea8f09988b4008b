package main

import (
	"archive/zip"
	"bytes"
	"flag"
	"fmt"
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
	commitAs(t, mirrors, name, "x", files)
}

// commitAs adds a commit of files with a message.
func commitAs(t *testing.T, mirrors, name, message string, files map[string]string) {
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
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", message}} {
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
		add(source{repo: "o/go", format: godoc, files: []string{"*.go"}}, map[string]string{
			"a.go": "// Package a counts the sheep of a shepherd.\npackage a\n\n// Flock is all the sheep that one shepherd has.\ntype Flock struct {\n\t// Tired sheep stay behind the others.\n\tTired int\n}\n\n" +
				"// Count returns the number of sheep. It wakes none.\nfunc (f *Flock) Count() int { return 0 }\n\n// short\nvar x int\n\n// maxSheep bounds what a dog can keep.\nconst maxSheep = 9\n",
			"b.go": "no Go", "vendor/c.go": "// Package c is not ours.\npackage c\n"}),
		add(source{repo: "o/minutes", format: meetings, files: []string{"*.jsonl"}}, map[string]string{
			"m.jsonl": `{"specific_query_list":[{"query":"What did they decide?","answer":"Two buttons."}],"meeting_transcripts":[{"speaker":"A","content":"We need {vocalsound} buttons for it ."},{"speaker":"B","content":"{um} no"},{"speaker":"B","content":"Two of them are enough for all ."}]}` + "\n"}),
		add(source{repo: "o/wishes", format: intents, files: []string{"*.csv", "*.json"}}, map[string]string{
			"a.csv": "text,category\nwhere is my card,arrival\nsend me money,transfer\nmy card is late,arrival\npay my friend,transfer\n", "b.json": `{"train":[["book a table","food"],["a table for two","food"],["what","oos"]]}`}),
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

// TestHistory: subjects go with bodies and files, and what programs wrote is left out.
func TestHistory(t *testing.T) {
	mirrors := t.TempDir()
	for i, message := range []string{
		"raft: wait for the leader (#12)\n\nA follower answered reads\nbefore it had caught up.\n\nSigned-off-by: A <a@example.com>",
		"Bump example.com/x from 1 to 2\n\nBumps it from one to two, as it says.", "short", "Merge the branch of somebody", "docs: say what waits for what",
	} {
		commitAs(t, mirrors, "o/log", message, map[string]string{fmt.Sprintf("raft/read%d.go", i): "x"})
	}
	var out, report bytes.Buffer
	if err := writeCorpus(mirrors, []source{{repo: "o/log", format: history}}, &out, &report); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`t docs: say what waits for what
p log/change docs: say what waits for what_raft/read4.go
t raft: wait for the leader
p log/commit raft: wait for the leader_A follower answered reads before it had caught up.
t A follower answered reads before it had caught up.
p log/change raft: wait for the leader_raft/read0.go
`, "_", "\t")
	want = strings.NewReplacer("\nt ", "\nt\t", "\np log/change ", "\np\tlog/change\t", "\np log/commit ", "\np\tlog/commit\t").Replace("\n" + want)[1:]
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
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
	for _, s := range append(sources(), teams()...) {
		key := fmt.Sprint(s.repo, s.format, s.files)
		if s.licence == "" || seen[key] || s.format != parallel && s.format != history && len(s.files) == 0 {
			t.Errorf("source %s is incomplete or comes twice", s.repo)
		}
		seen[key] = true
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"x"}, {"fit", "-dims", "33"}, {"fit", "-nonsense"}, {"corpus", "-mirrors", t.TempDir(), "-o", filepath.Join(t.TempDir(), "c")}, {"corpus", "-o", t.TempDir()}, {"fit", "-corpus", "absent"}} {
		if run(args) == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
