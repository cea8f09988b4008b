package main

// format says how the files of a source are read.
type format uint8

const (
	markdown  format = iota // headings, paragraphs, list items
	parallel                // Markdown in two languages under two folders
	catalogue               // gettext: a sentence and its translation
	book                    // XHTML chapters of Standard Ebooks
	wordnet                 // YAML of the Open English WordNet
	tabbed                  // a sentence and its translation, divided by a tab
	dialogues               // JSON, one of the shapes in dialogue.go
	turns                   // TSV of MultiDoGO
	captions                // "id#n<tab>caption"
	lexicon                 // words of the Chinese Open Wordnet
	questions               // JSON lines: question and answer
	bitext                  // classical and modern Chinese
	history                 // messages of commits
	godoc                   // comments of Go code
	meetings                // QMSum
	intents                 // requests and what they want
)

// source is one public repository and what is read of it.
type source struct {
	repo, ref string
	licence   string
	format    format
	// files are path.Match patterns without the rule that * stops at a slash.
	files []string
	// other is, for parallel, the folder that files[0]'s folder is translated in.
	from, to string
	// repoTo is the repository of the translation, if it is another.
	repoTo, refTo string
	// mentions is what a file has to contain, where each states its own licence.
	mentions string
	// every reads only each n-th file; 0 reads all.
	every int
}

func sources() []source {
	md := []string{"*.md", "*.mdx", "*.markdown"}
	list := []source{
		{repo: "kubernetes/enhancements", licence: "Apache-2.0", format: markdown, files: []string{"keps/*.md"}},
		{repo: "python/peps", licence: "public domain", format: markdown, files: []string{"peps/*.rst"}, mentions: "public domain"},
		{repo: "tldr-pages/tldr", licence: "CC BY 4.0", format: markdown, files: []string{"pages/*.md", "pages.zh/*.md"}},
		{repo: "golang/website", licence: "CC BY 4.0", format: markdown, files: []string{"_content/blog/*.md", "_content/doc/*.md"}},
		{repo: "prometheus/docs", licence: "Apache-2.0", format: markdown, files: []string{"docs/*.md", "content/*.md"}},
		{repo: "rust-lang/rust-by-example", licence: "MIT or Apache-2.0", format: markdown, files: []string{"src/*.md"}},
		{repo: "donnemartin/system-design-primer", licence: "CC BY 4.0", format: markdown, files: []string{"README.md", "README-zh-Hans.md", "solutions/*.md"}},
		{repo: "Snailclimb/JavaGuide", licence: "Apache-2.0", format: markdown, files: []string{"docs/*.md"}},
		{repo: "Anduin2017/HowToCook", licence: "Unlicense", format: markdown, files: []string{"dishes/*.md", "tips/*.md"}},
		{repo: "ant-design/ant-design", licence: "MIT", format: markdown, files: []string{"components/*.md", "docs/*.md"}},
		{repo: "h5bp/Front-end-Developer-Interview-Questions", licence: "MIT", format: markdown, files: md},
		{repo: "18F/content-guide", licence: "CC0-1.0", format: markdown, files: md},
		{repo: "rust-lang/book", repoTo: "KaiserY/trpl-zh-cn", licence: "MIT or Apache-2.0", format: parallel, from: "src/", to: "src/"},
		{repo: "reactjs/react.dev", repoTo: "reactjs/zh-hans.react.dev", licence: "CC BY 4.0", format: parallel, from: "src/content/", to: "src/content/"},
		{repo: "vuejs/docs", repoTo: "vuejs-translations/docs-zh-cn", licence: "CC BY 4.0", format: parallel, from: "src/", to: "src/"},
		{repo: "k8smeetup/kubernetes.github.io", licence: "CC BY 4.0", format: parallel, from: "docs/", to: "cn/docs/"},
		{repo: "open-telemetry/opentelemetry.io", licence: "CC BY 4.0", format: parallel, from: "content/en/", to: "content/zh/"},
		{repo: "helm/helm-www", licence: "MIT", format: parallel, from: "docs/", to: "i18n/zh/docusaurus-plugin-content-docs/current/"},
		{repo: "cncf/glossary", licence: "CC BY 4.0", format: parallel, from: "content/en/", to: "content/zh-cn/"},
		{repo: "github/opensource.guide", licence: "CC BY 4.0", format: parallel, from: "_articles/", to: "_articles/zh-hans/"},
		{repo: "apache/apisix", licence: "Apache-2.0", format: parallel, from: "docs/en/", to: "docs/zh/"},
		{repo: "electron/i18n", licence: "MIT", format: parallel, from: "content/en-US/", to: "content/zh-CN/"},
		{repo: "python/python-docs-zh-cn", ref: "3.13", licence: "PSF-2.0", format: catalogue, files: []string{"*.po"}},
		{repo: "docschina/webpack.js.org", licence: "CC BY 4.0", format: markdown, files: []string{"src/content/*.md", "src/content/*.mdx"}},
		{repo: "globalwordnet/english-wordnet", licence: "CC BY 4.0", format: wordnet, files: []string{"src/yaml/noun.*.yaml", "src/yaml/verb.*.yaml", "src/yaml/adj.*.yaml", "src/yaml/adv.*.yaml"}},
		{repo: "google-research-datasets/Taskmaster", licence: "CC BY 4.0", format: dialogues, files: []string{"TM-4-2024/data/*.json"}},
		{repo: "alexa/Topical-Chat", licence: "CDLA-Sharing-1.0 (data)", format: dialogues, files: []string{"conversations/*.json"}},
		{repo: "thu-coai/KdConv", licence: "Apache-2.0", format: dialogues, files: []string{"data/*/dev.json", "data/*/test.json"}},
		{repo: "thu-coai/CrossWOZ", licence: "Apache-2.0", format: dialogues, files: []string{"data/crosswoz/val.json.zip", "data/crosswoz/test.json.zip"}},
		{repo: "awslabs/multi-domain-goal-oriented-dialogues-dataset", licence: "CDLA-Permissive-1.0", format: turns, files: []string{"data/paper_splits/splits_annotated_at_turn_level/*.tsv"}},
		{repo: "13luoyu/Transformer-machine-translation", licence: "CC BY 2.0 FR (Tatoeba)", format: tabbed, files: []string{"cmn.txt"}},
		{repo: "li-xirong/coco-cn", licence: "MIT", format: captions, files: []string{"data/coco-cn_ext.icap2020.txt"}},
		{repo: "omwn/omw-data", licence: "WordNet", format: lexicon, files: []string{"wns/cow/wn-data-cmn.tab"}},
		{repo: "openai/grade-school-math", licence: "MIT", format: questions, files: []string{"grade_school_math/data/test.jsonl", "grade_school_math/data/train.jsonl"}},
		{repo: "NiuTrans/Classical-Modern", licence: "MIT", format: bitext, files: []string{"*/target.txt"}, every: 12},
	}
	for _, name := range []string{
		"agatha-christie_the-murder-on-the-links", "agatha-christie_the-mysterious-affair-at-styles",
		"arthur-conan-doyle_the-adventures-of-sherlock-holmes", "arthur-conan-doyle_the-memoirs-of-sherlock-holmes",
		"charles-dickens_david-copperfield", "dorothy-l-sayers_whose-body", "e-m-forster_a-room-with-a-view",
		"ernest-hemingway_the-sun-also-rises", "f-scott-fitzgerald_short-fiction", "f-scott-fitzgerald_the-great-gatsby",
		"jane-austen_pride-and-prejudice", "jerome-k-jerome_three-men-in-a-boat", "l-m-montgomery_anne-of-green-gables",
		"leo-tolstoy_anna-karenina_constance-garnett", "louisa-may-alcott_little-women", "mark-twain_the-adventures-of-tom-sawyer",
		"o-henry_short-fiction", "p-g-wodehouse_love-among-the-chickens", "p-g-wodehouse_right-ho-jeeves",
		"samuel-pepys_the-diary", "sinclair-lewis_babbitt", "sinclair-lewis_main-street", "theodore-dreiser_sister-carrie",
	} {
		list = append(list, source{repo: "standardebooks/" + name, licence: "CC0-1.0", format: book, files: []string{"src/epub/text/*.xhtml"}})
	}
	return list
}
