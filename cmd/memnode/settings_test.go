package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"mneme/internal/embed"
	"mneme/internal/node"
)

func TestLayersWinInOrder(t *testing.T) {
	for _, tc := range []struct {
		name       string
		file       string
		environ    []string
		args       []string
		want       string
		wantSource string
	}{
		{"default", "", nil, nil, "info", "default"},
		{"file over default", "log-level: warn", nil, nil, "warn", "file"},
		{"environment over file", "log-level: warn", []string{"MNEME_LOG_LEVEL=error"}, nil, "error", "env MNEME_LOG_LEVEL"},
		{"flag over environment", "log-level: warn", []string{"MNEME_LOG_LEVEL=error"}, []string{"--log-level=debug"}, "debug", "flag --log-level"},
		{"empty variable is unset", "", []string{"MNEME_LOG_LEVEL="}, nil, "info", "default"},
		{"a flag equal to the default counts", "log-level: warn", nil, []string{"--log-level", "info"}, "info", "flag --log-level"},
		{"empty file", "# nothing\n", nil, nil, "info", "default"},
		{"empty document", "---\n", nil, nil, "info", "default"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := stopsWhenReady(t, newFake())
			if tc.file != "" {
				w.file(t, ".mneme/config.yaml", tc.file)
			}
			w.environ = tc.environ
			doc := w.config(t, tc.args...)
			got := doc["log-level"]
			if got.Value != tc.want || !strings.HasPrefix(origin{got.Source, got.Detail}.String(), tc.wantSource) {
				t.Errorf("got %v from %s %s, want %s from %s", got.Value, got.Source, got.Detail, tc.want, tc.wantSource)
			}
		})
	}
}

// config runs `memnode config --json` and returns its rows by name.
func (w *world) config(t *testing.T, args ...string) map[string]configRow {
	t.Helper()
	sys := w.system
	out := &lockedBuffer{}
	sys.out = out
	if code := run(t.Context(), sys, append([]string{"config", "--json"}, args...)); code != 0 {
		t.Fatalf("exit %d: %s", code, w.err)
	}
	var doc configDoc
	if err := json.Unmarshal([]byte(out.String()), &doc); err != nil {
		t.Fatal(err)
	}
	rows := map[string]configRow{}
	for _, r := range doc.Settings {
		rows[r.Name] = r
	}
	return rows
}

func TestEverySettingReachesTheNode(t *testing.T) {
	masterKey, err := node.MasterKeySource("env:KEY", func(name string) string { return map[string]string{"KEY": "master"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	want := func(dir string) node.Config {
		return node.Config{
			DataDir: filepath.Join(dir, "data"), HTTPAddr: "127.0.0.1:1", NATSAddr: "127.0.0.1:2", NATSURL: "nats://log:3",
			External: node.ExternalNATS{Monitors: []string{"http://a:4", "http://b:5"}, SystemURL: "nats://sys:3", Replicas: 5,
				Access: node.NATSAccess{Creds: filepath.Join(dir, "n.creds"), NKey: filepath.Join(dir, "n.seed"), CA: filepath.Join(dir, "n.ca"),
					Cert: filepath.Join(dir, "n.crt"), Key: filepath.Join(dir, "n.key")}},
			Auth: "token", AuthToken: "sesame", OAuth: &node.OAuth{Issuer: "https://login.example", Resource: "https://mneme.example/mcp", Scopes: []string{"a", "b"}},
			Cluster: &node.ClusterConfig{NodeID: "n1", PeerAddr: "127.0.0.1:7", RouteAddr: "127.0.0.1:8", Join: []string{"127.0.0.1:7", "n2:7"},
				Expect: 3, AllowTwo: true, ReplaceLost: true, Certs: filepath.Join(dir, "certs"), PeerAdvertise: "n1:9", RouteAdvertise: "n1:10"},
			TLS: &node.TLSConfig{Cert: filepath.Join(dir, "s.crt"), Key: filepath.Join(dir, "s.key"), ClientCA: filepath.Join(dir, "ca.crt")}, HealthAddr: "127.0.0.1:9",
			Embedder:     embed.Config{Provider: "openai", Model: "m", BaseURL: "http://127.0.0.1:6/v1", Dimensions: 256, APIKey: embed.NewSecret("key"), Dir: filepath.Join(dir, "model")},
			MasterKey:    masterKey,
			VectorEngine: "exact", Namespaces: []string{"team-a", "team-b"}, Dev: true, Insecure: true,
			Live: node.Live{SlowSearch: 2 * time.Second, SlowSearchText: true, TraceShare: 0.25,
				AllowedHosts: []string{"mneme.example", "other.example"}, AllowedOrigins: []string{"https://a.example", "http://b.example:1"},
				Limits: node.Limits{Connections: 11, Searches: 12, Pages: 13, Exports: 14, Streams: 15, NATSReads: 16, Queue: 17, Bodies: 18 << 20, Answers: 19 << 20}},
			AdminSocket: filepath.Join(dir, "s.sock"), Version: "v1.2.3", DrainTimeout: 7 * time.Second, Linger: 9 * time.Minute,
		}
	}
	secrets := []string{"MNEME_AUTH_TOKEN=sesame", "OPENAI_API_KEY=key", "KEY=master"}
	for name, set := range map[string]func(t *testing.T, w *world) []string{
		"flags": func(_ *testing.T, w *world) []string {
			w.environ = secrets
			return []string{"--data-dir", "~/data", "--http-addr=127.0.0.1:1", "--nats-addr", "127.0.0.1:2", "--nats-url", "nats://log:3",
				"--nats-monitor", "http://a:4", "--nats-monitor", "http://b:5", "--auth", "token", "--embedder", "openai",
				"--nats-system-url", "nats://sys:3", "--nats-replicas", "5", "--nats-creds", "~/n.creds", "--nats-nkey", "~/n.seed", "--nats-ca", "~/n.ca", "--nats-cert", "~/n.crt", "--nats-key", "~/n.key",
				"--node-id", "n1", "--peer-addr", "127.0.0.1:7", "--route-addr", "127.0.0.1:8", "--join", "127.0.0.1:7,n2:7", "--bootstrap-expect", "3", "--allow-two", "--replace-lost", "--peer-certs", "~/certs", "--peer-advertise", "n1:9", "--route-advertise", "n1:10",
				"--embedder-model", "m", "--embedder-url", "http://127.0.0.1:6/v1", "--embedder-dimensions", "256", "--local-model", "~/model",
				"--master-key", "env:KEY", "--vector-engine", "exact", "--namespace", "team-a,team-b", "--dev", "--insecure-listen",
				"--tls-cert", "~/s.crt", "--tls-key", "~/s.key", "--tls-client-ca", "~/ca.crt", "--health-addr", "127.0.0.1:9",
				"--allowed-host", "mneme.example", "--allowed-host", "other.example",
				"--allowed-origin", "https://a.example,http://b.example:1", "--admin-socket", "~/s.sock", "--drain-timeout", "7s", "--linger", "9m", "--oauth-issuer", "https://login.example", "--oauth-resource", "https://mneme.example/mcp", "--oauth-scope", "a", "--oauth-scope", "b", "--slow-search=2s", "--slow-search-text", "--traces-share", "0.25",
				"--max-connections", "11", "--max-searches", "12", "--max-pages", "13", "--max-exports", "14", "--max-streams", "15", "--max-nats-reads", "16", "--max-queue", "17", "--max-bodies", "18", "--max-answers", "19"}
		},
		"environment": func(_ *testing.T, w *world) []string {
			w.environ = append([]string{"MNEME_DATA_DIR=" + w.dir + "/data", "MNEME_HTTP_ADDR=127.0.0.1:1", "MNEME_NATS_ADDR=127.0.0.1:2",
				"MNEME_NODE_ID=n1", "MNEME_PEER_ADDR=127.0.0.1:7", "MNEME_ROUTE_ADDR=127.0.0.1:8", "MNEME_JOIN=127.0.0.1:7,n2:7", "MNEME_BOOTSTRAP_EXPECT=3", "MNEME_ALLOW_TWO=true", "MNEME_REPLACE_LOST=true", "MNEME_PEER_CERTS=" + w.dir + "/certs", "MNEME_PEER_ADVERTISE=n1:9", "MNEME_ROUTE_ADVERTISE=n1:10",
				"MNEME_NATS_URL=nats://log:3", "MNEME_NATS_MONITOR=http://a:4, http://b:5", "MNEME_AUTH=token", "MNEME_EMBEDDER=openai",
				"MNEME_NATS_SYSTEM_URL=nats://sys:3", "MNEME_NATS_REPLICAS=5", "MNEME_NATS_CREDS=" + w.dir + "/n.creds", "MNEME_NATS_NKEY=" + w.dir + "/n.seed", "MNEME_NATS_CA=" + w.dir + "/n.ca", "MNEME_NATS_CERT=" + w.dir + "/n.crt", "MNEME_NATS_KEY=" + w.dir + "/n.key",
				"MNEME_EMBEDDER_MODEL=m", "MNEME_EMBEDDER_URL=http://127.0.0.1:6/v1", "MNEME_EMBEDDER_DIMENSIONS=256", "MNEME_LOCAL_MODEL=" + w.dir + "/model",
				"MNEME_MASTER_KEY=env:KEY", "MNEME_VECTOR_ENGINE=exact", "MNEME_NAMESPACES=team-a,team-b", "MNEME_DEV=true", "MNEME_INSECURE_LISTEN=1",
				"MNEME_TLS_CERT=" + w.dir + "/s.crt", "MNEME_TLS_KEY=" + w.dir + "/s.key", "MNEME_TLS_CLIENT_CA=" + w.dir + "/ca.crt", "MNEME_HEALTH_ADDR=127.0.0.1:9",
				"MNEME_TLS_CA=memctl's", "MNEME_TLS_CLIENT_CERT=memctl's", "MNEME_TLS_CLIENT_KEY=memctl's",
				"MNEME_ALLOWED_HOST=mneme.example,other.example", "MNEME_ALLOWED_ORIGIN=https://a.example,http://b.example:1", "MNEME_ADMIN_SOCKET=" + w.dir + "/s.sock", "MNEME_DRAIN_TIMEOUT=7s", "MNEME_LINGER=9m", "MNEME_OAUTH_ISSUER=https://login.example", "MNEME_OAUTH_RESOURCE=https://mneme.example/mcp", "MNEME_OAUTH_SCOPE=a,b", "MNEME_SLOW_SEARCH=2s", "MNEME_SLOW_SEARCH_TEXT=true", "MNEME_TRACES_SHARE=0.25",
				"MNEME_MAX_CONNECTIONS=11", "MNEME_MAX_SEARCHES=12", "MNEME_MAX_PAGES=13", "MNEME_MAX_EXPORTS=14", "MNEME_MAX_STREAMS=15", "MNEME_MAX_NATS_READS=16", "MNEME_MAX_QUEUE=17", "MNEME_MAX_BODIES=18", "MNEME_MAX_ANSWERS=19", "HOME=/nowhere"}, secrets...)
			return nil
		},
		"file": func(t *testing.T, w *world) []string {
			w.environ = secrets
			return []string{"--config", w.file(t, "elsewhere.yaml", "data-dir: ~/data\nhttp-addr: 127.0.0.1:1\nnats-addr: 127.0.0.1:2\n"+
				"node-id: n1\npeer-addr: 127.0.0.1:7\nroute-addr: 127.0.0.1:8\njoin: [127.0.0.1:7, n2:7]\nbootstrap-expect: 3\nallow-two: true\nreplace-lost: true\npeer-certs: ~/certs\npeer-advertise: n1:9\nroute-advertise: n1:10\n"+
				"nats-url: nats://log:3\nnats-monitor: [http://a:4, &b http://b:5]\nauth: token\nembedder: openai\nembedder-model: m\n"+
				"nats-system-url: nats://sys:3\nnats-replicas: 5\nnats-creds: ~/n.creds\nnats-nkey: ~/n.seed\nnats-ca: ~/n.ca\nnats-cert: ~/n.crt\nnats-key: ~/n.key\n"+
				"embedder-url: http://127.0.0.1:6/v1\nembedder-dimensions: 256\nlocal-model: ~/model\nmaster-key: env:KEY\nvector-engine: exact\nnamespace:\n  - team-a\n  - team-b\n"+
				"tls-cert: ~/s.crt\ntls-key: ~/s.key\ntls-client-ca: ~/ca.crt\nhealth-addr: 127.0.0.1:9\n"+
				"dev: true\ninsecure-listen: true\nallowed-host: mneme.example,other.example\nallowed-origin: [https://a.example, http://b.example:1]\nadmin-socket: ~/s.sock\ndrain-timeout: 7s\nlinger: 9m\noauth-issuer: https://login.example\noauth-resource: https://mneme.example/mcp\noauth-scope: [a, b]\nslow-search: 2s\nslow-search-text: true\ntraces-share: 0.25\n"+
				"max-connections: 11\nmax-searches: 12\nmax-pages: 13\nmax-exports: 14\nmax-streams: 15\nmax-nats-reads: 16\nmax-queue: 17\nmax-bodies: 18\nmax-answers: 19\n")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := stopsWhenReady(t, newFake())
			args := set(t, w)
			if code := w.run(args...); code != 0 {
				t.Fatalf("exit %d: %s", code, w.err)
			}
			got := w.cfg
			if got.Embedder.APIKey.Reveal() != "key" {
				t.Error("the API key did not arrive")
			}
			if v, ok := got.Environment("OPENAI_API_KEY"); !ok || v != "key" {
				t.Error("the environment did not arrive")
			}
			expect := want(w.dir)
			got.Environment, got.Process = nil, node.Process{}
			got.Logger, got.Embedder.APIKey, expect.Embedder.APIKey = nil, embed.Secret{}, embed.Secret{}
			if !reflect.DeepEqual(got, expect) {
				t.Errorf("got\n%+v\nwant\n%+v", got, expect)
			}
		})
	}
}

func TestUnknownAndMalformedNamesEndItBeforeAnythingOpens(t *testing.T) {
	for _, tc := range []struct {
		name    string
		file    string
		environ string
		args    []string
		want    []string
	}{
		{"unknown key", "log-level: warn\nhttp-adr: x\n", "", nil, []string{"config.yaml:2:", `"http-adr" is unknown`, "did you mean http-addr?"}},
		{"unknown key, nothing near", "colour: blue\n", "", nil, []string{`"colour"`, "memnode config"}},
		{"underscores", "http_addr: x\n", "", nil, []string{"did you mean http-addr?"}},
		{"key twice", "dev: true\ndev: false\n", "", nil, []string{"config.yaml:2:", "twice"}},
		{"not a mapping", "- a\n", "", nil, []string{"config.yaml:1:", "not a list of settings"}},
		{"broken YAML", "a: [\n", "", nil, []string{"config.yaml: line "}},
		{"missing value", "http-addr:\n", "", nil, []string{":1: http-addr: the value is missing"}},
		{"nested value", "http-addr: {a: b}\n", "", nil, []string{"not a plain word"}},
		{"nested list", "namespace: [[a]]\n", "", nil, []string{"not a plain word"}},
		{"list for a word", "http-addr: [a]\n", "", nil, []string{"not a plain word"}},
		{"bad number", "embedder-dimensions: many\n", "", nil, []string{`"many" is not a whole number`}},
		{"bad bool", "dev: maybe\n", "", nil, []string{`"maybe" is neither true nor false`}},
		{"bad choice", "auth: open\n", "", nil, []string{`"open" is none of off, token`}},
		{"config in the file", "config: x\n", "", nil, []string{`"config" cannot be set in a file`, "give --config"}},
		{"token in the file", "auth-token: sesame\n", "", nil, []string{"cannot be set in a file", "MNEME_AUTH_TOKEN"}},
		{"data directory in its own file", "data-dir: /elsewhere\n", "", nil, []string{"cannot say where the data directory is"}},
		{"unknown variable", "", "MNEME_HTTP_ADRR=x", nil, []string{"MNEME_HTTP_ADRR is unknown", "did you mean MNEME_HTTP_ADDR?"}},
		{"bad variable", "", "MNEME_DRAIN_TIMEOUT=soon", nil, []string{"MNEME_DRAIN_TIMEOUT", `"soon" is not a duration`}},
		{"unknown flag", "", "", []string{"--http-adr", "x"}, []string{"no flag --http-adr", "did you mean --http-addr?"}},
		{"unknown flag, nothing near", "", "", []string{"--colour"}, []string{"no flag --colour", "lists the flags"}},
		{"unknown short flag", "", "", []string{"-x"}, []string{"no flag -x"}},
		{"flag without value", "", "", []string{"--http-addr"}, []string{"http-addr"}},
		{"bad flag", "", "", []string{"--log-format", "xml"}, []string{"--log-format:", `"xml" is none of text, json`}},
		{"token as a flag", "", "", []string{"--auth-token", "sesame"}, []string{"no flag --auth-token"}},
		{"argument", "", "", []string{"confg"}, []string{`the argument "confg"`, "did you mean config?"}},
		{"missing file", "", "", []string{"--config", "/nowhere/at/all.yaml"}, []string{"/nowhere/at/all.yaml cannot be read"}},
		{"file for a data directory", "x: y\n", "", []string{"--data-dir", "~/.mneme/config.yaml"}, []string{"cannot be read", "--data-dir names a folder"}},
		{"no data directory", "", "", []string{"--data-dir="}, []string{"no data directory"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := fails(t, nil)
			w.environ = []string{tc.environ, "MNEME_ADDR=a", "MNEME_TOKEN=b", "MNEME_NAMESPACE=c", "MNEME_AGENT=d", "MNEME_DATA=e",
				"MNEME_NATS_NODE_PASSWORD=f", "MNEME_NATS_AGENTS_PASSWORD=g", "MNEME_NATS_SYSTEM_PASSWORD=h", "MNEME_HOOKS=off", "MNEME_RELEASES=i", "MNEME_S3_PLAINTEXT=true"}
			if tc.file != "" {
				w.file(t, ".mneme/config.yaml", tc.file)
			}
			if code := w.run(tc.args...); code != exitUsage {
				t.Errorf("exit %d, want %d", code, exitUsage)
			}
			wantHas(t, "standard error", w.err.String(), append(tc.want, "memnode: ")...)
			if w.opens != 0 || w.out.String() != "" {
				t.Errorf("opened %d times, printed %q", w.opens, w.out)
			}
			if n := strings.Count(w.err.String(), "\n"); n > 2 {
				t.Errorf("%d lines, want one and a hint:\n%s", n, w.err)
			}
		})
	}
}

func TestFileThatIsNoFile(t *testing.T) {
	w := fails(t, nil)
	if code := w.run("--config", w.dir); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	big := w.file(t, "big.yaml", strings.Repeat("#", maxFileBytes+1))
	if code := w.run("--config", big); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "is a directory", "larger than 1 MiB")
}

func TestHomeMayBeUnknown(t *testing.T) {
	w := fails(t, nil)
	w.home = func() (string, error) { return "", errors.New("no $HOME") }
	if code := w.run(); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	wantHas(t, "standard error", w.err.String(), "home directory is not known", "--data-dir")
}

func TestConfigHidesSecrets(t *testing.T) {
	w := fails(t, nil)
	w.environ = []string{"MNEME_AUTH_TOKEN=sesame", "OPENAI_API_KEY=opensesame", "OPENAI_BASE_URL=http://127.0.0.1:6/v1"}
	args := []string{"--master-key", "command:/bin/keys --password sesame", "--embedder", "openai", "--nats-url", "nats://me:sesame@a:1,nats://you:sesame@b:1", "--nats-monitor", "http://x:sesame@c:1", "--nats-system-url", "nats://sys:sesame@a:1"}
	rows := w.config(t, args...)
	for name, want := range map[string]configRow{
		"auth-token":       {Value: redacted, Source: fromEnv, Detail: "MNEME_AUTH_TOKEN"},
		"embedder-api-key": {Value: redacted, Source: fromEnv, Detail: "OPENAI_API_KEY"},
		"master-key":       {Value: "command:/bin/keys " + redacted, Source: fromFlag, Detail: "--master-key"},
		"embedder-url":     {Value: "http://127.0.0.1:6/v1", Source: fromEnv, Detail: "OPENAI_BASE_URL"},
		"nats-url":         {Value: "nats://[redacted]@a:1,nats://[redacted]@b:1", Source: fromFlag, Detail: "--nats-url"},
		"data-dir":         {Value: filepath.Join(w.dir, ".mneme"), Source: fromDefault},
	} {
		got := rows[name]
		if got.Value != want.Value || got.Source != want.Source || got.Detail != want.Detail {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if code := w.run(append([]string{"config"}, args...)...); code != 0 {
		t.Fatalf("exit %d: %s", code, w.err)
	}
	wantHas(t, "config", w.out.String(), "SETTING", "auth-token", "env MNEME_AUTH_TOKEN", "(there is no "+filepath.Join(w.dir, ".mneme", "config.yaml"))
	if strings.Contains(w.out.String(), "sesame") {
		t.Errorf("a secret was printed:\n%s", w.out)
	}
	if w.opens != 0 {
		t.Error("config started a node")
	}
}

func TestConfigSaysWhichFileAndLine(t *testing.T) {
	w := fails(t, nil)
	path := w.file(t, ".mneme/config.yaml", "\nnamespace: [a, b]\n")
	if code := w.run("config", "--embedder=gemini"); code != 0 {
		t.Fatalf("exit %d: %s", code, w.err)
	}
	wantHas(t, "config", w.out.String(), "a,b", "file "+path+":2", "embedder-api-key")
	if rows := w.config(t, "--embedder=ollama"); rows["embedder-url"].Detail != "" {
		// Ollama's default address is the provider's, but it is shown with its source.
		wantHas(t, "source", rows["embedder-url"].Detail, "OLLAMA_HOST")
	}
}

// TestLocalModelIsADirectory: the model of the embedder local is where it is,
// and it stays known under another default.
func TestLocalModelIsADirectory(t *testing.T) {
	for name, c := range map[string]struct {
		args       []string
		model, dir string // dir below the home directory
	}{
		"by embedder-model":   {[]string{"--embedder", "local", "--embedder-model", "~/m"}, "", "m"},
		"by local-model":      {[]string{"--embedder", "local", "--local-model", "~/m"}, "", "m"},
		"by both":             {[]string{"--embedder", "local", "--embedder-model", "name", "--local-model", "~/m"}, "name", "m"},
		"for other embedders": {[]string{"--local-model", "~/m"}, "", "m"},
		"not at all":          {[]string{"--embedder", "openai", "--embedder-model", "m"}, "m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := stopsWhenReady(t, newFake())
			w.environ = []string{"OPENAI_API_KEY=key"}
			if code := w.run(c.args...); code != 0 {
				t.Fatalf("exit %d: %s", code, w.err)
			}
			want := ""
			if c.dir != "" {
				want = filepath.Join(w.dir, c.dir)
			}
			if got := w.cfg.Embedder; got.Model != c.model || got.Dir != want {
				t.Errorf("model %q, directory %q", got.Model, got.Dir)
			}
		})
	}
	w := stopsWhenReady(t, newFake())
	w.home = func() (string, error) { return "", errors.New("no $HOME") }
	if code := w.run("--data-dir", w.dir, "--local-model", "~/m"); code != 0 || w.cfg.Embedder.Dir != "~/m" {
		t.Errorf("exit %d, directory %q", code, w.cfg.Embedder.Dir)
	}
}

// TestFileThatOthersMayWriteToWasBelieved: config.yaml was read before anything of the
// data directory was looked at, and what it named as master-key ran.
func TestFileThatOthersMayWriteToWasBelieved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	for name, mode := range map[string]os.FileMode{"": 0o777, "config.yaml": 0o666} {
		w := stopsWhenReady(t, newFake())
		w.file(t, ".mneme/config.yaml", "no-such-setting: 1")
		home, err := w.home()
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(home, ".mneme")
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, name), mode)); err != nil {
			t.Fatal(err)
		}
		if code := run(t.Context(), w.system, []string{"config"}); code != exitUsage || !strings.Contains(w.err.String(), "others may write") {
			t.Errorf("%q: exit %d: %s", name, code, w.err)
		}
	}
}
