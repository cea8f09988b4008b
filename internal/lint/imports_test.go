package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// floor is what one package, or one folder of packages ("x/..."), may import of
// this module. A pattern "x/..." in may means x and everything below it.
type floor struct {
	pkg     string
	may     []string
	why     string // the reason, printed with each violation
	stdOnly bool   // and nothing from elsewhere
}

// house is the table of floors, from the ground up. Tests may import more.
func house() []floor {
	return []floor{
		{pkg: "memory", stdOnly: true, why: "the public vocabulary: whoever imports it must not get anything else"},
		{pkg: "client", may: []string{"memory"}, stdOnly: true, why: "the public client: whoever imports it must get the vocabulary only"},
		{pkg: "client/examples/...", may: []string{"client", "memory"}, stdOnly: true, why: "an example shows what anybody may import"},
		{pkg: "internal/lint", why: "the house rules look at files, not at packages"},
		{pkg: "internal/testaddr", stdOnly: true, why: "addresses for tests know nothing of who listens there"},
		{pkg: "internal/lint/testreport", stdOnly: true, why: "it runs before anything else is known to compile"},
		{pkg: "internal/lint/assertreport", stdOnly: true, why: "the same"},

		{pkg: "internal/spans", may: []string{"memory"}, why: "whoever works for a request may tell its span: it knows none of them"},
		{pkg: "internal/otlp", may: []string{"internal/spans"}, why: "sending spans knows nothing of what they tell of"},
		{pkg: "internal/otlp/otlptest", why: "a collector reads what any program sends"},

		{pkg: "internal/events", may: []string{"memory"}, why: "the log's formats are the ground that everything stands on"},
		{pkg: "internal/keyring", may: []string{"memory", "internal/storage"}, why: "keys know nothing of what they seal"},
		{pkg: "internal/tokens", why: "counting tokens needs nothing of what is counted"},
		{pkg: "internal/text", why: "the analysis of words is pure"},
		{pkg: "internal/dates", stdOnly: true, why: "reading dates is a function of a text and a time"},
		{pkg: "internal/embed/builtin", may: []string{"internal/text"}, why: "the built-in model is a function of words"},
		{pkg: "internal/embed/local", why: "a model in a directory is a function of its files and of text"},
		{pkg: "internal/embed/local/localtest", stdOnly: true, why: "it writes files that have to be readable without knowing who reads them"},
		{pkg: "internal/embed/static/tokens", may: []string{"internal/text"}, why: "the cut into tokens is a function of words"},
		{pkg: "internal/embed/static", may: []string{"internal/embed/builtin", "internal/embed/static/tokens", "internal/text"},
			why: "the static model is a function of words and of its weights"},
		{pkg: "internal/embed", may: []string{"internal/embed/builtin", "internal/embed/local", "internal/embed/static", "internal/spans", "internal/text"}, why: "embedders turn texts into vectors and know no memories"},
		{pkg: "internal/storage", why: "storage opens a database and knows no rows"},
		{pkg: "internal/storage/encfs", may: []string{"internal/storage"}, why: "encryption knows files and keys, not what they hold"},
		{pkg: "internal/index/text", may: []string{"internal/storage"}, why: "an index knows terms and documents, not memories"},
		{pkg: "internal/index/words", why: "what words are near to one another is a function of the words"},
		{pkg: "internal/index/vector", may: []string{"internal/storage"}, why: "an index knows vectors and documents, not memories"},
		{pkg: "internal/eventlog", may: []string{"memory", "internal/events", "internal/storage"}, why: "the log keeps frames and does not know what follows from them"},
		{pkg: "internal/eventlog/eventlogtest", may: []string{"internal/eventlog", "internal/events"}, why: "the contract of a log is about frames"},
		{pkg: "internal/eventlog/natstest", may: []string{"internal/eventlog", "internal/peer/devca", "internal/testaddr"}, why: "servers for tests are configured as people configure theirs"},
		{pkg: "internal/slots", stdOnly: true, why: "a bound on how much is done at once knows nothing of what is done"},
		{pkg: "internal/files", stdOnly: true, why: "writing small files of the system knows nothing of what is in them, and memctl has to stay small"},
		{pkg: "internal/certs", stdOnly: true, why: "certificates that follow their files know neither nodes nor clients"},
		{pkg: "internal/monitor", why: "a thread of the runtime knows nothing of what the program does"},
		{pkg: "internal/hangup", stdOnly: true, why: "ending a server knows nothing of what it answers"},
		{pkg: "internal/peer", may: []string{"internal/certs"}, stdOnly: true, why: "connections between nodes know nothing of what is said over them"},
		{pkg: "internal/peer/rpc", may: []string{"internal/hangup", "internal/peer", "internal/spans", "memory"}, why: "calls between nodes know nothing of what they ask for"},
		{pkg: "internal/peer/devca", may: []string{"internal/files"}, why: "certificates are files and know no node"},
		{pkg: "internal/raftfsm", may: []string{"internal/storage"}, why: "consensus agrees on bytes; the node adapts them to what they mean"},
		{pkg: "internal/raftfsm/raftmodel", may: []string{"internal/raftfsm"}, why: "the model stands in for a group and knows no more than it"},
		{pkg: "internal/cluster", may: []string{"memory", "internal/peer", "internal/peer/rpc", "internal/raftfsm"},
			why: "a cluster is formed before a node knows of logs, keys or shards"},
		{pkg: "internal/keygroup", may: []string{"memory", "internal/keyring", "internal/peer", "internal/peer/rpc", "internal/raftfsm", "internal/storage"},
			why: "the group of keys orders commands; it knows neither what is sealed nor who is a member"},

		{pkg: "internal/projections", may: []string{"memory", "internal/events", "internal/storage", "internal/index/..."},
			why: "projections are pure folds from events to rows: no network, no keys, no text, no configuration"},
		{pkg: "internal/settings", may: []string{"memory", "internal/events", "internal/keyring", "internal/embed", "internal/projections"},
			why: "settings are read from rows"},
		{pkg: "internal/derive", may: []string{"memory", "internal/events", "internal/keyring", "internal/text", "internal/embed/...", "internal/index/...",
			"internal/projections", "internal/settings"},
			why: "derivation is a function of event and keys: no log, no Raft, no network"},

		{pkg: "internal/ingest", may: []string{"memory", "internal/events", "internal/keyring", "internal/text", "internal/embed", "internal/eventlog",
			"internal/spans", "internal/storage", "internal/raftfsm", "internal/projections", "internal/settings", "internal/derive"},
			why: "ingest is the writing side and never answers a question"},
		{pkg: "internal/query/parse", may: []string{"memory", "internal/text"},
			why: "what a query says follows from its characters"},
		{pkg: "internal/query/rank", may: []string{"memory", "internal/dates", "internal/text", "internal/index/text", "internal/query/parse"},
			why: "ranking is a function of what was found: no rows, no keys, no clock"},
		{pkg: "internal/query/views", may: []string{"memory", "internal/events", "internal/keyring", "internal/text", "internal/embed", "internal/index/...",
			"internal/storage", "internal/projections", "internal/settings", "internal/derive", "internal/query/rank"},
			why: "views open what a capability allows; they answer no request and score nothing"},
		{pkg: "internal/query", may: []string{"memory", "internal/events", "internal/keyring", "internal/text", "internal/tokens", "internal/embed", "internal/index/text", "internal/index/words",
			"internal/projections", "internal/settings", "internal/spans", "internal/query/parse", "internal/query/rank", "internal/query/views"},
			why: "query is the reading side: it never sees Raft, the log or the writing side"},
		{pkg: "internal/query/querytest", may: []string{"memory", "internal/derive", "internal/embed", "internal/embed/builtin", "internal/events", "internal/keyring", "internal/projections", "internal/settings"},
			why: "the world of the reading side's tests is a state without a log; it reads nothing itself"},
		{pkg: "internal/replica", may: []string{"memory", "internal/events", "internal/keyring", "internal/storage", "internal/eventlog", "internal/raftfsm",
			"internal/projections", "internal/settings", "internal/derive", "internal/ingest"},
			why: "a replica brings log, consensus, state and the writer together; it knows no requests and no answers"},
		{pkg: "internal/auth", may: []string{"memory", "internal/events", "internal/keyring", "internal/storage"}, why: "who is asking is decided without what is asked"},
		{pkg: "internal/auth/authtest", stdOnly: true, why: "an authorization server knows nothing of whom its tokens are for"},
		{pkg: "internal/backup", may: []string{"memory", "internal/events", "internal/keyring", "internal/storage"},
			why: "backups are files, manifests and places: no log, no state, no node"},
		{pkg: "internal/backup/...", may: []string{"memory", "internal/backup"}, why: "a place keeps files and does not know what is in them"},
		{pkg: "internal/importer", may: []string{"memory"}, why: "importers turn files into captures, on the client's side"},
		{pkg: "internal/loader", may: []string{"memory", "client", "internal/importer"}, why: "an import talks to a node through the public client; what asks people and prints is passed in"},
		{pkg: "internal/hooks", may: []string{"memory", "client", "internal/likeness", "internal/project", "internal/recall", "internal/redact"},
			why: "a hook talks to a node through the public client, and has to start at once; what waits says in which project it was said"},
		{pkg: "internal/redact", stdOnly: true, why: "what is a secret follows from a text alone"},
		{pkg: "internal/project", may: []string{"memory"}, stdOnly: true, why: "a project is a folder and its Git remote; it knows no node"},
		{pkg: "internal/commits", may: []string{"memory", "internal/redact"}, why: "a commit's memory is a function of the commit"},
		{pkg: "internal/agentsync", may: []string{"memory", "internal/files", "internal/hooks"}, why: "the files of hosts are edited without knowing what is called"},
		{pkg: "internal/recall", may: []string{"memory", "internal/tokens"}, why: "a recall block is a function of an answer and a budget"},
		{pkg: "internal/likeness", may: []string{"memory", "client", "internal/recall"}, why: "what is said again is asked for like anything else, for hooks and tools alike"},
		{pkg: "internal/api/mcp", may: []string{"memory", "client", "internal/likeness", "internal/recall"}, why: "tools work through the public client, so that they need no rights of their own"},
		{pkg: "internal/api", may: []string{"memory", "internal/spans"}, why: "the interfaces of the transports speak the public vocabulary"},
		{pkg: "internal/api/...", may: []string{"memory", "internal/events", "internal/auth", "internal/api", "internal/slots", "internal/spans"},
			why: "a transport parses, calls and writes; it declares the interface it needs and the node passes what fulfils it"},
		{pkg: "internal/route", may: []string{"memory", "internal/api", "internal/events", "internal/peer", "internal/peer/rpc", "internal/spans"},
			why: "a write finds the node that leads without knowing what leading or writing is"},
		{pkg: "internal/node", may: []string{"memory", "internal/backup", "internal/events", "internal/keyring", "internal/text", "internal/embed", "internal/storage/...",
			"internal/index/...", "internal/eventlog", "internal/raftfsm", "internal/projections", "internal/settings", "internal/derive",
			"internal/ingest", "internal/replica", "internal/query/...", "internal/auth", "internal/api/...", "client",
			"internal/certs", "internal/hangup", "internal/peer", "internal/peer/rpc", "internal/cluster", "internal/keygroup", "internal/route", "internal/slots", "internal/spans"},
			why: "the node builds itself from parts"},

		{pkg: ".", may: []string{"memory", "client", "internal/node", "internal/embed"}, why: "the root package embeds a node in a program"},
		{pkg: "cmd/internal/pages", why: "man pages follow from a tree of verbs, whatever they do"},
		{pkg: "cmd/memctl/offline", may: []string{"memory"}, stdOnly: true, why: "what is asked for is said without what does it"},
		{pkg: "cmd/memctl/program", may: []string{"memory"}, stdOnly: true, why: "finding the other program needs nothing of either"},
		{pkg: "cmd/memctl/verbs", may: []string{"memory", "client", "cmd/memctl/offline", "cmd/memctl/program", "internal/agentsync", "internal/commits", "internal/files", "internal/hooks", "internal/importer", "internal/loader", "internal/peer/devca", "internal/project", "internal/api/mcp", "internal/monitor"},
			why: "verbs talk through the public client; whoever opens data directories and backups is passed in, so that memctl links no node"},
		{pkg: "cmd/memctl/direct", may: []string{"memory", "cmd/memctl/offline", "internal/backup", "internal/backup/s3", "internal/node"}, why: "data directories and backups are opened by the node's own code"},
		{pkg: "cmd/memctl", may: []string{"cmd/memctl/offline", "cmd/memctl/program", "cmd/memctl/verbs"}, why: "memctl is its verbs, and links no node"},
		{pkg: "cmd/memnode", may: []string{"memory", "cmd/memctl/direct", "cmd/memctl/offline", "cmd/memctl/program", "cmd/memctl/verbs", "internal/node", "internal/embed", "internal/otlp", "internal/monitor"},
			why: "memnode is flags, wiring and exit codes, and memctl where that opens a data directory"},
		{pkg: "bench/...", may: []string{"..."}, why: "benchmarks measure whatever there is"},
		{pkg: "test/...", may: []string{"..."}, why: "tests across packages look everywhere"},
	}
}

// technology is a library that only some packages may know.
type technology struct {
	prefix string
	only   []string
	why    string
}

func technologies() []technology {
	return []technology{
		{"github.com/hashicorp/raft", []string{"internal/raftfsm"}, "consensus is behind raftfsm, so that its library can be changed there"},
		{"go.etcd.io/bbolt", []string{"internal/raftfsm"}, "bbolt is the Raft log's store and nothing else's"},
		{"github.com/nats-io/nats-server", []string{"internal/eventlog", "internal/eventlog/natstest"}, "the embedded server is behind eventlog"},
		{"github.com/nats-io/nats.go", []string{"internal/eventlog", "internal/eventlog/eventlogtest", "internal/api/natsapi", "internal/node"}, "NATS is the log and one transport"},
		{"github.com/cockroachdb/pebble", []string{"internal/storage/...", "internal/raftfsm/...", "internal/eventlog", "internal/backup", "internal/index/text", "internal/projections", "internal/ingest", "internal/auth", "internal/keyring", "internal/keygroup", "internal/query/views", "internal/replica", "internal/node"},
			"the database is opened by storage and used by those who keep rows; others take its file systems"},
		{"github.com/blevesearch/vellum", []string{"internal/index/words"}, "transducers are behind words"},
		{"github.com/minio/minio-go", []string{"internal/backup/s3"}, "a bucket is behind the interface of a place of backups"},
		{"go.opentelemetry.io/otel/sdk", []string{"internal/otlp"}, "spans are made by the interface alone, so that only memnode links what sends them"},
		{"go.opentelemetry.io/otel/exporters", []string{"internal/otlp"}, "a collector is behind otlp"},
		{"go.opentelemetry.io/proto", []string{"internal/otlp/otlptest"}, "its messages are made by the exporter, and read by the tests' collector"},
		{"github.com/modelcontextprotocol/go-sdk", []string{"internal/api/mcp", "cmd/memctl/verbs"}, "the protocol is behind mcp; memctl gives it its standard streams"},
		{"github.com/coreos/go-oidc", []string{"internal/auth"}, "access tokens are checked where the operator's token is"},
		{"modernc.org/sqlite", []string{"internal/importer"}, "databases of other tools are read by the importer"},
		{"github.com/spf13", []string{"cmd/..."}, "flags are read by commands"},
		{"github.com/knadh/koanf", []string{"cmd/..."}, "configuration is read by commands"},
	}
}

// covers reports whether pattern names pkg.
func covers(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == dir || strings.HasPrefix(pkg, dir+"/")
	}
	return pattern == pkg
}

// floorOf returns the most exact floor of a package.
func floorOf(table []floor, pkg string) (floor, bool) {
	best, found := floor{}, false
	for _, f := range table {
		if covers(f.pkg, pkg) && (!found || len(f.pkg) > len(best.pkg) || f.pkg == pkg) && best.pkg != pkg {
			best, found = f, true
		}
	}
	return best, found
}

// checkImports applies the table to one file.
func checkImports(table []floor, s *source) []string {
	f, ok := floorOf(table, s.dir)
	if !ok {
		return []string{fmt.Sprintf("package %s is not in the table of internal/lint/imports_test.go\n\t"+
			"add a row that says what it may import of this module, and why; imports go down only", s.dir)}
	}
	if s.isTest() {
		return nil
	}
	var bad []string
	for i, p := range s.imports() {
		inside, ours := strings.CutPrefix(p, modulePath+"/")
		if p == modulePath {
			inside, ours = ".", true
		}
		switch {
		case ours && !slices.ContainsFunc(f.may, func(pattern string) bool { return covers(pattern, inside) }):
			bad = append(bad, s.at(s.ast.Imports[i], "%s must not import %s: %s\n\tmove the code down, or declare a small interface here and let internal/node pass what fulfils it", s.dir, inside, f.why))
		case !ours && f.stdOnly && strings.Contains(strings.Split(p, "/")[0], "."):
			bad = append(bad, s.at(s.ast.Imports[i], "%s must not import %s: %s\n\tuse the standard library, or do it in an internal package", s.dir, p, f.why))
		}
		bad = append(bad, checkTechnology(s, i, p)...)
	}
	return bad
}

func checkTechnology(s *source, i int, p string) []string {
	if s.below("bench") || s.below("test") {
		return nil
	}
	for _, tech := range technologies() {
		if strings.HasPrefix(p, tech.prefix) && !slices.ContainsFunc(tech.only, func(pattern string) bool { return covers(pattern, s.dir) }) {
			return []string{s.at(s.ast.Imports[i], "%s must not import %s: %s\n\task for what you need in %s", s.dir, p, tech.why, strings.Join(tech.only, ", "))}
		}
	}
	return nil
}

func TestImportsGoDown(t *testing.T) {
	table := house()
	seen := map[string]bool{}
	for _, s := range tree(t) {
		for _, bad := range checkImports(table, s) {
			if !seen[bad] {
				t.Error(bad)
			}
			seen[bad] = true
		}
	}
}

func TestImportRuleBites(t *testing.T) {
	table := house()
	file := func(dir, imports string) *source {
		return snippet(t, path.Join(dir, "x.go"), "package x\nimport ("+imports+")\n")
	}
	expect(t, checkImports(table, file("memory", `"mneme/internal/events"`)), "memory must not import internal/events")
	expect(t, checkImports(table, file("memory", `"github.com/oklog/ulid/v2"`)), "standard library")
	expect(t, checkImports(table, file("client", `"mneme/memory";"net/http"`)))
	expect(t, checkImports(table, file("internal/query", `"mneme/internal/raftfsm"`)), "never sees Raft")
	expect(t, checkImports(table, file("internal/query/rank", `"mneme/internal/projections"`)), "no rows")
	expect(t, checkImports(table, file("internal/query", `"mneme/internal/index/text";"mneme/memory"`)))
	expect(t, checkImports(table, file("internal/api/rest", `"mneme/internal/query"`)), "declares the interface")
	expect(t, checkImports(table, file("internal/api", `"mneme/internal/auth"`)), "public vocabulary")
	expect(t, checkImports(table, file("internal/events", `"mneme"`)), "must not import .")
	expect(t, checkImports(table, file("internal/ingest", `"github.com/hashicorp/raft"`)), "behind raftfsm")
	expect(t, checkImports(table, file("internal/novelty", "")), "not in the table")
	expect(t, checkImports(table, file("bench/internal/x", `"mneme/internal/query";"github.com/hashicorp/raft"`)))
	expect(t, checkImports(table, snippet(t, "internal/events/x_test.go", `package x
import "mneme/internal/node"`)))
}

// TestTableGoesDown proves that the table itself has no way up: no package may,
// over others, import itself.
func TestTableGoesDown(t *testing.T) {
	table := house()
	var walk func(pkg string, trail []string)
	walk = func(pkg string, trail []string) {
		if slices.Contains(trail, pkg) {
			t.Errorf("the table has a circle: %s", strings.Join(append(trail, pkg), " -> "))
			return
		}
		f, ok := floorOf(table, pkg)
		if !ok {
			t.Errorf("the table allows %s, which has no row", pkg)
		}
		for _, may := range f.may {
			if strings.HasSuffix(may, "/...") {
				continue // folders of leaves; their members have rows of their own
			}
			walk(may, append(trail, pkg))
		}
	}
	for _, f := range table {
		if strings.HasSuffix(f.pkg, "...") {
			continue
		}
		walk(f.pkg, nil)
	}
}
