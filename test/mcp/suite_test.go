package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/node"
)

// patience bounds what would otherwise hang.
const patience = 10 * time.Minute

func TestMain(m *testing.M) {
	eventlog.ShortenElections()
	os.Exit(m.Run())
}

// endpoint is /mcp of a node with the namespace team.
func endpoint(t *testing.T) (url string, n *node.Node) {
	t.Helper()
	n, err := node.Open(t.Context(), node.Config{DataDir: t.TempDir(), HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0", ReserveBytes: -1, Namespaces: []string{"team"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return "http://" + n.HTTPAddr() + "/mcp?namespace=team", n
}

// program runs one of npm's, without a network: what it needs is in node_modules.
func program(t *testing.T, name string, args ...string) (out string, err error) {
	t.Helper()
	bin, err := filepath.Abs("node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
		t.Skip("the suite is not installed: npm ci in test/mcp, or make test, does it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir(), "NO_COLOR=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if err != nil {
		t.Logf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), err
}

// The suite finds what it is known to find, and nothing else, in every revision.
func TestConformance(t *testing.T) {
	url, _ := endpoint(t)
	results := t.TempDir()
	out, err := program(t, "conformance", "server", "--url", url, "--suite", "all",
		"--expected-failures", "baseline.yml", "-o", results, "--timeout", "60000")
	if err != nil {
		t.Fatal(out[max(0, len(out)-8000):])
	}
	for _, passes := range []string{"server-initialize", "server-stateless", "tools-list", "completion-complete", "prompts-list", "resources-list", "caching", "http-header-validation"} {
		if !strings.Contains(out, "scenario: "+passes) {
			t.Errorf("%s did not run", passes)
		}
	}
	// The baseline expects server-stateless to fail, of whose checks most pass.
	failed, passed := checks(t, results, "server-stateless")
	want := []string{"sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-missing-capability-http-400", "sep-2575-server-no-log-without-loglevel", "sep-2575-server-rejects-undeclared-capability"}
	if !slices.Equal(failed, want) || passed < 20 {
		t.Errorf("of server-stateless %d checks pass and %q fail, want %q: those that need tools of the suite's own", passed, failed, want)
	}
}

// checks are those of a scenario that failed, in order, and how many passed.
func checks(t *testing.T, results, scenario string) (failed []string, passed int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(results, "server-"+scenario+"-*", "checks.json"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("results of %s: %q, %v", scenario, paths, err)
	}
	b, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ ID, Status string }
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE":
			failed = append(failed, c.ID)
		}
	}
	slices.Sort(failed)
	return failed, passed
}

// profileTools are the tools that each profile adds.
var profileTools = map[string][]string{
	"micro": {"memory_get", "memory_search", "memory_store"},
	"lite":  {"memory_forget", "memory_list", "memory_recall", "memory_timeline"},
	"full":  {"memory_revise", "add_observations", "create_entities", "create_relations", "delete_entities", "delete_observations", "delete_relations", "open_nodes", "read_graph", "search_nodes"},
}

// The inspector takes what is listed, in both eras and over both transports.
func TestInspector(t *testing.T) {
	url, n := endpoint(t)
	memctl := filepath.Join(t.TempDir(), "memctl")
	if out, err := exec.Command("go", "build", "-o", memctl, "mneme/cmd/memctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var want []string
	for _, profile := range []string{"micro", "lite", "full"} {
		want = append(want, profileTools[profile]...)
		slices.Sort(want)
		stdio := []string{"--cli", memctl, "mcp", "--addr", n.HTTPAddr(), "--start", "never", "-n", "team", "--profile", profile}
		for era, args := range map[string][]string{
			"legacy over HTTP": {"--cli", url + "&profile=" + profile, "--transport", "http", "--protocol-era", "legacy"},
			"modern over HTTP": {"--cli", url + "&profile=" + profile, "--transport", "http", "--protocol-era", "modern"},
			"stdio":            stdio,
		} {
			out, err := program(t, "mcp-inspector", append(args, "--method", "tools/list", "--strict")...)
			var list struct{ Tools []struct{ Name string } }
			if jsonErr := json.Unmarshal([]byte(out), &list); err != nil || jsonErr != nil {
				t.Fatalf("%s, %s: %v, %v\n%s", era, profile, err, jsonErr, out)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			if slices.Sort(names); !slices.Equal(names, want) {
				t.Errorf("%s, %s: %q, want %q", era, profile, names, want)
			}
		}
	}
	if out, err := program(t, "mcp-inspector", "--cli", url, "--transport", "http", "--protocol-era", "modern", "--method", "tools/call",
		"--tool-name", "memory_store", "--tool-args-json", `{"text":"the inspector was here"}`, "--format", "json", "-q"); err != nil || !strings.Contains(out, `"status":"created"`) {
		t.Error(err, out)
	}
}
