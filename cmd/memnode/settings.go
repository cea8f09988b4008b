package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"mneme/internal/embed"
	"mneme/internal/node"
	"mneme/internal/otlp"
)

// settings are the effective values and where each came from.
type settings struct {
	*koanf.Koanf
	opts    []option
	origins map[string]origin // by option name
	file    string            // the file that was looked for
	found   bool              // and whether it is there

	again func() (*settings, error) // reads all of them again
}

// origin of a value.
type origin struct {
	layer  layer
	detail string // the flag, the variable, or file:line
}

func (o origin) String() string {
	if o.detail == "" {
		return string(o.layer)
	}
	return string(o.layer) + " " + o.detail
}

// load merges the four layers.
func load(sys system, opts []option, flags *pflag.FlagSet) (*settings, error) {
	s := &settings{Koanf: koanf.New("."), opts: opts, origins: map[string]origin{}}
	s.again = func() (*settings, error) { return load(sys, opts, flags) }
	defaults := map[string]any{}
	for _, o := range opts {
		defaults[o.name] = o.def
		s.origins[o.name] = origin{layer: fromDefault}
	}
	if err := s.Load(confmap.Provider(defaults, ""), nil); err != nil {
		return nil, fmt.Errorf("defaults: %w", err)
	}
	environ, err := readEnviron(sys, opts)
	if err != nil {
		return nil, err
	}
	given := koanf.New(".")
	// s has every name, so that only what was given is taken from the flags.
	err = given.Load(posflag.ProviderWithFlag(flags, ".", s, func(f *pflag.Flag) (string, any) {
		v, ok := f.Value.(*value)
		if !ok || !f.Changed {
			return "", nil
		}
		return f.Name, v.given
	}), nil)
	if err != nil {
		return nil, fmt.Errorf("flags: %w", err)
	}
	// The data directory says where the file is, so it is known before the file.
	for _, k := range []*koanf.Koanf{environ, given} {
		if err := s.Merge(k); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
	}
	if err := s.loadFile(sys); err != nil {
		return nil, err
	}
	s.overlay(environ, fromEnv, option.variable)
	s.overlay(given, fromFlag, func(o option) string { return "--" + o.name })
	return s, s.resolveDir(sys)
}

// overlay puts what k has above what is there.
func (s *settings) overlay(k *koanf.Koanf, from layer, detail func(option) string) {
	for _, o := range s.opts {
		if k.Exists(o.name) {
			_ = s.Set(o.name, k.Get(o.name)) // it fails only for nested keys
			s.origins[o.name] = origin{layer: from, detail: detail(o)}
		}
	}
}

// loadFile reads the configuration file into s. A default file may be missing, and is
// believed only in a data directory that nobody else may write to: it may name a command.
func (s *settings) loadFile(sys system) error {
	explicit := s.String("config")
	var err error
	if explicit != "" {
		s.file, err = absolute(sys, explicit)
	} else if s.file, err = absolute(sys, s.String("data-dir")); err == nil {
		s.file = filepath.Join(s.file, "config.yaml")
	}
	if err != nil {
		return err
	}
	if explicit == "" && exists(s.file) {
		if err := node.CheckDataDir(filepath.Dir(s.file)); err != nil {
			return err
		}
	}
	values, err := readFile(s.file, explicit != "", s.opts)
	if err != nil {
		return err
	}
	s.found = values != nil
	for _, v := range values {
		if v.name == "data-dir" && explicit == "" {
			return misuse("remove the line, or keep the file elsewhere and give --config",
				"%s:%d: a data directory's own file cannot say where the data directory is", s.file, v.line)
		}
		_ = s.Set(v.name, v.value) // it fails only for nested keys
		s.origins[v.name] = origin{layer: fromFile, detail: fmt.Sprintf("%s:%d", s.file, v.line)}
	}
	return nil
}

// resolveDir makes the data directory absolute, as everything prints it.
func (s *settings) resolveDir(sys system) error {
	dir, err := absolute(sys, s.String("data-dir"))
	if err != nil {
		return err
	}
	return s.Set("data-dir", dir)
}

// absolute expands ~ and makes path absolute.
func absolute(sys system, path string) (string, error) {
	if path == "" {
		return "", misuse("give --data-dir DIR", "no data directory given")
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		home, err := sys.home()
		if err != nil {
			return "", misuse("give --data-dir DIR", "the home directory is not known: %v", err)
		}
		path = filepath.Join(home, rest)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", misuse("give an absolute path", "path %q: %v", path, err)
	}
	return abs, nil
}

// foreign are the variables of Mneme that are not memnode's: memctl's, the tests'
// folder of data, and the passwords of an external nats-server as 'memctl
// nats-config' configures it.
func foreign(name string) bool {
	return slices.Contains([]string{"MNEME_ADDR", "MNEME_TOKEN", "MNEME_NAMESPACE", "MNEME_AGENT", "MNEME_DATA",
		"MNEME_HOOKS", "MNEME_RELEASES", "MNEME_S3_PLAINTEXT",
		"MNEME_TLS_CA", "MNEME_TLS_CLIENT_CERT", "MNEME_TLS_CLIENT_KEY",
		"MNEME_NATS_NODE_PASSWORD", "MNEME_NATS_AGENTS_PASSWORD", "MNEME_NATS_SYSTEM_PASSWORD"}, name)
}

// readEnviron reads the variables of opts. An empty one counts as unset, an
// unknown one is an error, unless it is of a service of Kubernetes.
func readEnviron(sys system, opts []option) (*koanf.Koanf, error) {
	var bad error
	links := findServiceLinks(sys)
	k := koanf.New(".")
	err := k.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return slices.Sorted(slices.Values(sys.environ)) },
		TransformFunc: func(name, words string) (string, any) {
			i := slices.IndexFunc(opts, func(o option) bool { return o.settable(fromEnv) && o.variable() == name })
			switch {
			case foreign(name), words == "", bad != nil:
				return "", nil
			case i < 0 && links.has(name):
				return "", nil
			case i < 0:
				bad = misuse(unknownHint(name, variables(opts), "unset it; `memnode config` lists the variables"),
					"the environment variable %s is unknown", name)
				return "", nil
			}
			v, err := opts[i].parse(words)
			if err != nil {
				bad = misuse("", "environment variable %s: %v", name, err)
				return "", nil
			}
			return opts[i].name, v
		},
	}), nil)
	if err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return k, bad
}

func variables(opts []option) []string {
	var out []string
	for _, o := range opts {
		out = append(out, o.variable())
	}
	return out
}

// lookup is os.LookupEnv on the system's environment; the last one wins.
func (sys system) lookup(name string) (string, bool) {
	for _, kv := range slices.Backward(sys.environ) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// getenv is lookup for who need not tell empty from missing.
func (sys system) getenv(name string) string {
	value, _ := sys.lookup(name)
	return value
}

// nodeConfig is what the node is opened with.
func (s *settings) nodeConfig(sys system) node.Config {
	e := s.embedder(sys)
	return node.Config{
		DataDir:  s.String("data-dir"),
		HTTPAddr: s.String("http-addr"),
		NATSAddr: s.String("nats-addr"), NATSURL: s.String("nats-url"), External: s.externalNATS(sys),
		Shards: s.Int("shards"), Cluster: s.cluster(sys), TLS: s.tls(sys), HealthAddr: s.String("health-addr"),
		Auth: s.String("auth"), AuthToken: s.String("auth-token"), OAuth: s.oauth(),
		Embedder:     e.WithEnvironment(sys.lookup),
		Environment:  sys.lookup,
		VectorEngine: s.String("vector-engine"),
		Namespaces:   s.Strings("namespace"),
		Dev:          s.Bool("dev"), Insecure: s.Bool("insecure-listen"),
		Live:         s.live(),
		AdminSocket:  s.path(sys, "admin-socket"),
		Version:      sys.version.Version,
		DrainTimeout: s.Duration("drain-timeout"), Linger: s.Duration("linger"),
	}
}

// oauth says whose access tokens are taken; nil where no option says so.
func (s *settings) oauth() *node.OAuth {
	o := node.OAuth{Issuer: s.String("oauth-issuer"), Resource: s.String("oauth-resource"), Scopes: s.Strings("oauth-scope")}
	if o.Issuer == "" && o.Resource == "" && len(o.Scopes) == 0 {
		return nil
	}
	return &o
}

// traces says where traces go; nil where no option says so, and nothing is traced.
func (s *settings) traces(sys system) *otlp.Options {
	if s.String("traces-endpoint") == "" {
		return nil
	}
	return &otlp.Options{Endpoint: s.String("traces-endpoint"), CA: s.path(sys, "traces-ca"), Headers: s.String("traces-headers"),
		Share: s.Float64("traces-share"), Node: s.String("node-id"), Version: sys.version.Version}
}

// live are the settings of the node that may change while it runs.
func (s *settings) live() node.Live {
	return node.Live{SlowSearch: s.Duration("slow-search"), SlowSearchText: s.Bool("slow-search-text"),
		TraceShare: s.Float64("traces-share"), AllowedHosts: s.Strings("allowed-host"), AllowedOrigins: s.Strings("allowed-origin"),
		Limits: node.Limits{Connections: s.Int("max-connections"), Searches: s.Int("max-searches"), Pages: s.Int("max-pages"), Exports: s.Int("max-exports"),
			Streams: s.Int("max-streams"), NATSReads: s.Int("max-nats-reads"), Queue: s.Int("max-queue"),
			Bodies: s.Int64("max-bodies") << 20, Answers: s.Int64("max-answers") << 20}}
}

// secrets are the words of the settings that nobody else may see.
func (s *settings) secrets(sys system) (out []string) {
	take := func(words string) {
		if words != "" {
			out = append(out, words)
		}
	}
	for _, o := range s.opts {
		if o.secret {
			take(s.String(o.name))
		}
	}
	for _, name := range []string{"nats-url", "nats-system-url"} {
		for address := range strings.SplitSeq(s.String(name), ",") {
			if u, err := url.Parse(address); err == nil && u.User != nil {
				if password, ok := u.User.Password(); ok {
					take(password)
				} else {
					take(u.User.Username()) // a token
				}
			}
		}
	}
	take(sys.getenv("OPENAI_API_KEY"))
	take(sys.getenv("GEMINI_API_KEY"))
	if from, ok := strings.CutPrefix(s.String("master-key"), "env:"); ok {
		take(sys.getenv(from))
	}
	return out
}

// cluster says which cluster the node belongs to; nil where no option says so.
func (s *settings) cluster(sys system) *node.ClusterConfig {
	c := &node.ClusterConfig{NodeID: s.String("node-id"), PeerAddr: s.String("peer-addr"), RouteAddr: s.String("route-addr"),
		Join: s.Strings("join"), Expect: s.Int("bootstrap-expect"), Certs: s.path(sys, "peer-certs"),
		PeerAdvertise: s.String("peer-advertise"), RouteAdvertise: s.String("route-advertise"), AllowTwo: s.Bool("allow-two"), ReplaceLost: s.Bool("replace-lost")}
	if c.NodeID == "" && c.PeerAddr == "" && c.RouteAddr == "" && len(c.Join) == 0 && c.Expect == 0 && c.Certs == "" &&
		c.PeerAdvertise == "" && c.RouteAdvertise == "" && !c.AllowTwo && !c.ReplaceLost {
		return nil
	}
	return c
}

// externalNATS says how an external NATS is reached.
func (s *settings) externalNATS(sys system) node.ExternalNATS {
	return node.ExternalNATS{Monitors: s.Strings("nats-monitor"), SystemURL: s.String("nats-system-url"), Replicas: s.Int("nats-replicas"),
		Access: node.NATSAccess{Creds: s.path(sys, "nats-creds"), NKey: s.path(sys, "nats-nkey"), CA: s.path(sys, "nats-ca"),
			Cert: s.path(sys, "nats-cert"), Key: s.path(sys, "nats-key")}}
}

// tls says how clients reach the node; nil where no option says so, and in clear.
func (s *settings) tls(sys system) *node.TLSConfig {
	c := node.TLSConfig{Cert: s.path(sys, "tls-cert"), Key: s.path(sys, "tls-key"), ClientCA: s.path(sys, "tls-client-ca")}
	if c == (node.TLSConfig{}) {
		return nil
	}
	return &c
}

// path is a setting that names a file, "" if it is not set. One that cannot be
// made absolute is used as it was given, and the error names it.
func (s *settings) path(sys system, name string) string {
	given := s.String(name)
	if given == "" {
		return ""
	}
	if full, err := absolute(sys, given); err == nil {
		return full
	}
	return given
}

// embedder is the embedder of new namespaces. The directory of a local model is
// given by either name, and kept for namespaces that chose it under another
// default.
func (s *settings) embedder(sys system) embed.Config {
	e := embed.Config{
		Provider: s.String("embedder"), Model: s.String("embedder-model"), Dir: s.String("local-model"),
		BaseURL: s.String("embedder-url"), Dimensions: s.Int("embedder-dimensions"),
	}
	if e.Provider == embed.ProviderLocal && e.Dir == "" {
		e.Dir, e.Model = e.Model, ""
	}
	if e.Dir != "" {
		if dir, err := absolute(sys, e.Dir); err == nil {
			e.Dir = dir
		} // else it is opened as it was given, and the error names it
	}
	return e
}

// checkTraces says what cannot work about where traces go.
func (s *settings) checkTraces(sys system) error {
	opt := s.traces(sys)
	if opt == nil {
		return nil
	}
	return badTraces(opt.Check())
}

func badTraces(err error) error {
	if err == nil {
		return nil
	}
	return misuse("--traces-endpoint https://collector.example:4318; --traces-ca is a file; MNEME_TRACES_HEADERS is like authorization=Bearer%20TOKEN", "%v", err)
}
