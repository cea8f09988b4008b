package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mneme/internal/node"
	"mneme/memory"
)

// kind of an option's value.
type kind int

const (
	text kind = iota
	list
	boolean
	number
	duration
	share
)

// option is one setting: a flag, a variable and a key of the file by one name.
type option struct {
	name    string
	kind    kind
	def     any      // string, []string, bool, int, float64 or, for durations, a string
	choices []string // of a text; nil = free
	env     string   // its variable if that is not the name in capitals
	only    layer    // the one layer that may set it; "" = all
	secret  bool
	unit    string // of a number
	from    int    // the least that a number may be
	to      int    // and the most; 0 = whatever there is
	reloads bool   // it counts while the node runs, too
	usage   string
}

// layer is a place that settings come from.
type layer string

const (
	fromDefault layer = "default"
	fromFile    layer = "file"
	fromEnv     layer = "env"
	fromFlag    layer = "flag"
)

// envPrefix begins every variable of Mneme.
const envPrefix = "MNEME_"

// options is the whole list, in the order in which it is shown.
func options() []option {
	return []option{
		{name: "data-dir", def: "~/.mneme", usage: "directory that everything is below"},
		{name: "config", def: "", usage: "configuration file (default <data-dir>/config.yaml)"},
		{name: "http-addr", def: node.DefaultHTTPAddr, usage: "where HTTP listens; port 0 picks one"},
		{name: "nats-addr", def: node.DefaultNATSAddr, usage: "where the embedded NATS listens; port 0 picks one"},
		{name: "nats-url", def: "", usage: "use an external NATS at this URL instead of the embedded one; several servers of one are separated by commas"},
		{name: "nats-monitor", kind: list, def: []string{}, usage: "monitoring `URL` of a server of the external NATS, proof that it syncs (repeatable, one for each server)"},
		{name: "nats-system-url", def: "", usage: "the same proof without monitoring addresses: URL of the external NATS with a user of its system account"},
		{name: "nats-replicas", kind: number, unit: "copies", def: 0, usage: "how many copies the log has on the external NATS: 1, 3 or 5 (0: those it has; a new one 3 in a cluster, else 1)"},
		{name: "nats-creds", def: "", usage: "`file` with the credentials for the external NATS: a JWT and its key, or USER:PASSWORD"},
		{name: "nats-nkey", def: "", usage: "`file` with the seed of an NKey for the external NATS"},
		{name: "nats-ca", def: "", usage: "`file` with authorities that the external NATS's certificates are of"},
		{name: "nats-cert", def: "", usage: "`file` with a certificate to show to the external NATS"},
		{name: "nats-key", def: "", usage: "`file` with its key"},
		{name: "shards", kind: number, unit: "shards", def: 0, usage: "how many shards a new data directory or cluster gets, for ever (0: as many as there are; of a new one 1)"},
		{name: "node-id", def: "", usage: "`id` of this node in its cluster, for ever; with it, peer-addr, route-addr (or nats-url), join and peer-certs memnode is one of several nodes"},
		{name: "peer-addr", def: "", usage: "where it listens for the other nodes and they reach it, as host:port"},
		{name: "peer-advertise", def: "", usage: "where the other nodes reach it, if that is not peer-addr"},
		{name: "route-addr", def: "", usage: "where its log server listens for the others' and they reach it, as host:port"},
		{name: "route-advertise", def: "", usage: "where the others' log servers reach it, if that is not route-addr"},
		{name: "join", kind: list, def: []string{}, usage: "peer `address` of a node, its own may be among them (repeatable, or separated by commas)"},
		{name: "bootstrap-expect", kind: number, unit: "nodes", def: 0, usage: "found the cluster as soon as so many nodes see each other: 3 or 5 (0: join one that is there)"},
		{name: "allow-two", kind: boolean, def: false, usage: "let bootstrap-expect be 2: everything is kept twice, and nothing is written when either node is gone"},
		{name: "replace-lost", kind: boolean, def: false, usage: "with an empty data directory take the place of the node with this id that the cluster knows: its data are lost for ever"},
		{name: "peer-certs", def: "", usage: "`directory` with ca.crt and <node-id>.crt and .key, as memctl cluster certs makes them"},
		{name: "auth", def: "off", choices: []string{"off", "token"}, usage: "who may talk to the node: off (everybody) or token"},
		{name: "auth-token", def: "", only: fromEnv, secret: true, usage: "operator token (default: <data-dir>/keys/operator.token)"},
		{name: "oauth-issuer", def: "", usage: "`URL` of an authorization server whose access tokens /mcp takes beside the operator token, for hosted clients"},
		{name: "oauth-resource", def: "", usage: "`URL` by which clients reach /mcp: access tokens have to be for it"},
		{name: "oauth-scope", kind: list, def: []string{}, usage: "`scope` that an access token has to have (repeatable)"},
		{name: "tls-cert", def: "", usage: "`file` with the certificate that clients are shown, over HTTP and NATS (PEM; read again when it changes)"},
		{name: "tls-key", def: "", usage: "`file` with its key"},
		{name: "tls-client-ca", def: "", usage: "`file` with authorities: every client must show a certificate of theirs"},
		{name: "health-addr", def: "", usage: "where /livez and /readyz, and nothing else, are answered in clear, for probes that show no certificate"},
		{name: "insecure-listen", kind: boolean, def: false, usage: "listen off loopback without auth, or with a token and no TLS"},
		{name: "allowed-host", kind: list, reloads: true, def: []string{}, usage: "further `name` that HTTP requests may be addressed to (repeatable)"},
		{name: "allowed-origin", kind: list, reloads: true, def: []string{}, usage: "`origin` (scheme://host[:port]) of pages served elsewhere that may call this node (repeatable)"},
		{name: "admin-socket", def: "", usage: "where the operator reaches the node without a token (default <data-dir>/admin.sock)"},
		{name: "namespace", kind: list, def: []string{}, env: "MNEME_NAMESPACES", usage: "create this namespace if it is missing (repeatable)"},
		{name: "embedder", def: "auto", choices: []string{"auto", "builtin", "local", "ollama", "openai", "gemini", "none"}, usage: "embedder of new namespaces: auto (= builtin), builtin, local, ollama, openai, gemini, none"},
		{name: "embedder-model", def: "", usage: "its model (default: the provider's); for local the model's directory"},
		{name: "local-model", def: "", usage: "`directory` of the model that the embedder local runs, whichever is the default"},
		{name: "embedder-url", def: "", usage: "its address, for servers that speak the provider's protocol"},
		{name: "embedder-dimensions", kind: number, unit: "components", def: 0, usage: "size of its vectors, for models that can shorten them (0: the model's own)"},
		{name: "vector-engine", def: "mneme", choices: []string{"mneme", "coder", "exact"}, usage: "how vectors are searched: mneme, coder or exact"},
		{name: "master-key", def: "file", usage: "where the keyring's master key comes from: file, file:/PATH, env:NAME or command:PROGRAM ARGUMENTS"},
		{name: "dev", kind: boolean, def: false, usage: "write to an external NATS without proof that it syncs"},
		{name: "linger", kind: duration, def: "0s", usage: "end when nobody was connected for so long, as nodes do that memctl mcp starts (0: never)"},
		{name: "drain-timeout", kind: duration, def: node.DefaultDrainTimeout.String(), usage: "how long stopping may take"},
		{name: "max-connections", kind: number, unit: "connections", from: 1, to: 1 << 20, reloads: true, def: node.DefaultConnections, usage: "how many HTTP connections are open at once"},
		{name: "max-searches", kind: number, unit: "searches", from: 1, to: 1 << 20, reloads: true, def: node.DefaultSearches, usage: "how many searches over HTTP are worked on at once"},
		{name: "max-pages", kind: number, unit: "pages", from: 1, to: 1 << 20, reloads: true, def: node.DefaultPages, usage: "how many pages of lists over HTTP are made at once, up to 8 MiB each"},
		{name: "max-exports", kind: number, unit: "exports", from: 1, to: 1 << 20, reloads: true, def: node.DefaultExports, usage: "how many exports over HTTP run at once"},
		{name: "max-streams", kind: number, unit: "streams", from: 1, to: 1 << 20, reloads: true, def: node.DefaultStreams, usage: "how many event streams over HTTP are open at once"},
		{name: "max-nats-reads", kind: number, unit: "reads", from: 1, to: 1 << 20, reloads: true, def: node.DefaultNATSReads, usage: "how many requests to the services over NATS are worked on at once"},
		{name: "max-queue", kind: number, unit: "captures", from: 1, to: 1 << 20, reloads: true, def: node.DefaultQueue, usage: "how many captures wait to be written, in each shard that this node leads"},
		{name: "max-bodies", kind: number, unit: "MiB", from: memory.MaxBatchBytes >> 20, to: 1 << 20, reloads: true, def: node.DefaultBodies >> 20, usage: "how much the bodies of all HTTP requests under way hold together"},
		{name: "max-answers", kind: number, unit: "MiB", from: 1, to: 1 << 20, reloads: true, def: node.DefaultAnswers >> 20, usage: "how much long answers hold that HTTP clients have not taken yet"},
		{name: "slow-search", kind: duration, def: "1s", reloads: true, usage: "log searches that take so long or longer, with their plan and without their text (0s: none)"},
		{name: "slow-search-text", kind: boolean, def: false, reloads: true, usage: "have that log hold the text of queries"},
		{name: "traces-endpoint", def: "", usage: "`URL` of a collector that takes traces over OTLP/HTTP, such as https://collector.example:4318 (default: nothing is traced)"},
		{name: "traces-share", kind: share, reloads: true, def: 0.01, usage: "which share of the requests is traced, 0 to 1, where the caller does not say"},
		{name: "traces-ca", def: "", usage: "`file` with authorities that the collector's certificate is of"},
		{name: "traces-headers", def: "", only: fromEnv, secret: true, usage: "what the collector asks to be sent, as NAME=VALUE, separated by commas"},
		{name: "log-level", reloads: true, def: "info", choices: []string{"debug", "info", "warn", "error"}, usage: "what is logged: debug, info, warn or error"},
		{name: "log-format", def: "text", choices: []string{"text", "json"}, usage: "how it is logged: text or json"},
	}
}

// variable is the name of o's environment variable.
func (o option) variable() string {
	if o.env != "" {
		return o.env
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
}

// settable reports whether l may set o.
func (o option) settable(l layer) bool {
	if o.only != "" {
		return o.only == l
	}
	return l != fromFile || o.name != "config"
}

// parse reads one value from words; a list is separated by commas.
func (o option) parse(words string) (any, error) {
	words = strings.TrimSpace(words)
	switch o.kind {
	case boolean:
		v, err := strconv.ParseBool(words)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", words)
		}
		return v, nil
	case number:
		v, err := strconv.Atoi(words)
		if o.to > 0 && (err != nil || v < o.from || v > o.to) {
			return nil, fmt.Errorf("%q is not a whole number from %d to %d", words, o.from, o.to)
		}
		if err != nil || v < 0 {
			return nil, fmt.Errorf("%q is not a whole number from 0 on", words)
		}
		return v, nil
	case share:
		v, err := strconv.ParseFloat(words, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return nil, fmt.Errorf("%q is not a share from 0 to 1, such as 0.01", words)
		}
		return v, nil
	case duration:
		if v, err := time.ParseDuration(words); err != nil || v < 0 || v == 0 && o.name != "slow-search" {
			return nil, fmt.Errorf("%q is not a duration such as 20s", words)
		}
		return words, nil
	case list:
		out := []string{}
		for part := range strings.SplitSeq(words, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
		return out, nil
	}
	if o.choices != nil && !slices.Contains(o.choices, words) {
		return nil, fmt.Errorf("%q is none of %s", words, strings.Join(o.choices, ", "))
	}
	return words, nil
}

// value makes an option a pflag.Value, so that all layers are read by parse.
type value struct {
	option
	given any
}

func (v *value) Set(words string) error {
	parsed, err := v.parse(words)
	if more, ok := parsed.([]string); ok {
		before, _ := v.given.([]string)
		parsed = append(before, more...)
	}
	v.given = parsed
	return err
}

// String is the default that help shows; pflag asks for it on a zero value too.
func (v *value) String() string {
	if v.def == nil || v.kind == list {
		return ""
	}
	return fmt.Sprint(v.def)
}

func (v *value) Type() string {
	return [...]string{text: "string", list: "strings", boolean: "bool", number: "int", duration: "duration", share: "share"}[v.kind]
}

// addFlags gives cmd the flags of opts and returns them.
func addFlags(cmd *cobra.Command, opts []option) *pflag.FlagSet {
	flags := pflag.NewFlagSet("memnode", pflag.ContinueOnError)
	flags.SortFlags = false
	for _, o := range opts {
		if !o.settable(fromFlag) {
			continue
		}
		f := flags.VarPF(&value{option: o}, o.name, "", o.usage)
		if o.kind == boolean {
			f.NoOptDefVal = "true"
		}
	}
	cmd.PersistentFlags().SortFlags = false
	cmd.PersistentFlags().AddFlagSet(flags)
	for _, o := range opts {
		if o.choices != nil {
			// It fails only for a flag that does not exist or has one already.
			_ = cmd.RegisterFlagCompletionFunc(o.name, cobra.FixedCompletions(o.choices, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return flags
}
