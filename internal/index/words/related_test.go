package words

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"mneme/internal/text"
)

// Bounds of the groups of related.txt.
const (
	maxGroup = 7
	maxName  = 32 // bytes
)

func TestRelated(t *testing.T) {
	groups := Related()
	if len(groups) < 1500 {
		t.Errorf("%d groups", len(groups))
	}
	of := map[string][]int{}
	for i, g := range groups {
		line := lineOf(g)
		if len(g) < 2 || len(g) > maxGroup || line != strings.ToLower(line) {
			t.Errorf("%q: a group has 2 to %d words, in lower case", line, maxGroup)
		}
		var seen []string
		for _, related := range g {
			word := related.Word
			terms := text.Terms(word)
			if len(terms) != 1 || len(word) > maxName || strings.ContainsAny(word, " =#:,") {
				t.Errorf("%q: %q is no word by itself: %q", line, word, terms)
				continue
			}
			if slices.Contains(seen, terms[0]) {
				t.Errorf("%q: %q is there already, as %s", line, word, terms[0])
			}
			seen = append(append(seen, terms[0]), text.Spellings(word)...) // those are one word already
			of[word] = append(of[word], i)
		}
	}
	for i, g := range groups {
		for _, j := range of[g[0].Word] {
			if i != j && !slices.ContainsFunc(g, func(word RelatedWord) bool { return !slices.Contains(groups[j], word) }) {
				t.Errorf("%q says no more than %q", lineOf(g), lineOf(groups[j]))
			}
		}
		if !slices.ContainsFunc(g, func(word RelatedWord) bool { return !word.AskedOnly }) {
			t.Errorf("%q finds nothing", lineOf(g))
		}
	}
}

func lineOf(group []RelatedWord) string {
	var words []string
	for _, w := range group {
		words = append(words, w.Word)
	}
	return strings.Join(words, " = ")
}

// products are names of products of which none stands for another one. Words with a meaning of
// their own that is more common (salt, chef) are left out.
var products = strings.Fields(`
pagerduty opsgenie grafana prometheus jaeger opentelemetry loki elk etcd kubernetes docker podman containerd vmware kvm
firecracker gvisor eks gke aks istio linkerd envoy nginx traefik haproxy elb aws azure gcp minio cloudflare cloudfront akamai
fastly terraform pulumi ansible puppet launchdarkly kafka rabbitmq sqs ubuntu debian rhel centos windows bash zsh brew apt
wireguard openvpn tailscale letsencrypt certbot pgbouncer consul serf chrony postgres mysql mariadb percona aurora rds mongodb
dynamodb redis valkey memcached influxdb timescale clickhouse pgvector qdrant lucene elasticsearch solr alembic flyway rocksdb
leveldb pebble innodb sqlite okta keycloak trivy snyk clamav pytest jest playwright cypress selenium locust jmeter quickcheck
codecov jenkins circleci gcc clang llvm bazel cmake gradle maven webpack vite esbuild npm pypi yarn pnpm pip poetry uv cargo
artifactory nexus dependabot renovate eslint golangci sonarqube codeql prettier gofmt git github gitlab bitbucket python django
flask jupyter colab ruby rails java spring kotlin android javascript typescript node php laravel wordpress gdb delve pprof perf
graphql apollo grpc protobuf json avro parquet arrow iceberg confluence notion airflow dagster prefect snowflake bigquery redshift
databricks flink dbt datahub tableau looker metabase pytorch tensorflow jax claude gpt chatgpt llama mistral vllm tesseract
midjourney faiss ios iphone ipad chrome firefox safari react vue angular svelte nextjs nuxt remix tailwind sass bootstrap vim
emacs vscode jetbrains figma jira rust
`)

// TestNoProductStandsForAnother: who asks for one does not mean another one. Names of one product may
// stand for each other, and what it is may stand for it.
func TestNoProductStandsForAnother(t *testing.T) {
	for _, group := range Related() {
		found := slices.DeleteFunc(group, func(w RelatedWord) bool { return !slices.Contains(products, w.Word) })
		if len(found) > 1 {
			t.Errorf("near to each other: %q", lineOf(found))
		}
	}
	for _, group := range Aliases() {
		found := slices.DeleteFunc(group, func(name string) bool { return !slices.Contains(products, name) })
		if len(found) > 1 {
			t.Errorf("names of one thing: %q", found)
		}
	}
}

// written are ordinary words whose stem other words of the list have. What is near to a word is
// looked for by its stem, and must not find them.
var written = strings.Fields(`
represents relative relates related provided depends dependent objects likes orders allows general regular product products response laws
unchanged tokens advances person people content access indicates public custom customer project projects repeat
cost valid local accepted appears location engine engines following assistant imported
certificate random compute continue invalid function review generated major authentication separate reproduce virtual
anonymous usable realize rest active research correct integral evidence expected coordinates fabric derived period night
economic distinct observed associated exhibit available termination required unschedulable different demonstrates original
directly aid universe operation schedule utils composite produces specific ready consists completed fair moderate fitness
authors adapter published resolved abstract distributed lived excellent preferred visual performed identity exclusive conversations
except emergent optionally experiments logical illustrates terminal integrated received contains managed know observation
several animal activity identify authorized directive conversion effective applicable positive refers express transit operating paste
`)

func TestWhatIsNearIsNoOtherWord(t *testing.T) {
	of := map[string][]string{}
	for _, word := range written {
		of[text.Terms(word)[0]] = append(of[text.Terms(word)[0]], word)
	}
	for _, group := range Related() {
		if strings.ContainsFunc(lineOf(group), func(r rune) bool { return r >= unicode.MaxLatin1 }) {
			continue // a word in another language stands for one that it is
		}
		for _, w := range group {
			for _, other := range of[text.Terms(w.Word)[0]] {
				if !w.AskedOnly && !slices.ContainsFunc(bases(other), func(base string) bool { return slices.Contains(bases(w.Word), base) }) {
					t.Errorf("%q: who writes %s does not say %s", lineOf(group), other, w.Word)
				}
			}
		}
	}
}

// bases are what a word may be another form of, in the plural or as a verb.
func bases(word string) []string {
	out := []string{word}
	for _, ending := range []string{"s", "es", "d", "ed", "ing"} {
		if base, ok := strings.CutSuffix(word, ending); ok {
			out = append(out, base, base+"e")
		}
	}
	return out
}
