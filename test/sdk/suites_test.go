package sdk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// tool is a program that a suite needs. Where it is not installed, the suite is skipped,
// which CI takes for a failure: there, make test installs it.
func tool(t *testing.T, name string, atLeast ...int) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", name)
	}
	if err != nil {
		t.Skipf("%s is not installed (Debian, Ubuntu: apt-get install nodejs npm python3)", name)
	}
	if len(atLeast) > 0 {
		out, err := exec.Command(path, "--version").CombinedOutput()
		if err != nil {
			t.Fatalf("%s --version: %v\n%s", name, err, out)
		}
		for i, digits := range regexp.MustCompile(`\d+`).FindAllString(string(out), len(atLeast)) {
			n, _ := strconv.Atoi(digits)
			if n < atLeast[i] {
				t.Fatalf("%s is %s, the clients need %v", name, bytes.TrimSpace(out), atLeast)
			}
			if n > atLeast[i] {
				break
			}
		}
	}
	return path
}

// run runs a program in a folder of the project and gives what it printed.
func run(t *testing.T, dir, input string, env []string, program string, args ...string) (stdout string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = filepath.Join(root, dir), environment(t.TempDir(), env...)
	cmd.Stdin = bytes.NewReader([]byte(input))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s\n%s", filepath.Base(program), args, errors.Join(err, ctx.Err()), out.Bytes(), said.Bytes())
	}
	return out.String() + said.String()
}

var withPrograms = func() []string { return []string{"MNEME_TEST_PROGRAMS=" + programs} }

// TestPythonSuite runs what sdk/python/tests has.
func TestPythonSuite(t *testing.T) {
	out := run(t, "sdk/python", "", withPrograms(), tool(t, "python3", 3, 10), "-X", "dev", "-W", "error", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
	ran := regexp.MustCompile(`Ran (\d+) tests`).FindStringSubmatch(out)
	if ran == nil || len(ran[1]) < 2 {
		t.Errorf("the suite ran hardly a test:\n%s", out)
	}
}

// TestTypeScriptSuite runs what sdk/typescript/test has.
func TestTypeScriptSuite(t *testing.T) {
	tests, err := filepath.Glob(filepath.Join(root, "sdk/typescript/test/*.test.js"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	args := []string{"--test", "--test-timeout=120000"}
	for _, path := range tests {
		args = append(args, filepath.Join("test", filepath.Base(path)))
	}
	out := run(t, "sdk/typescript", "", withPrograms(), tool(t, "node", 20), args...)
	ran := regexp.MustCompile(`(?m)^\S+ pass (\d+)$`).FindStringSubmatch(out)
	if ran == nil || len(ran[1]) < 2 {
		t.Errorf("the suite ran hardly a test:\n%s", out)
	}
}

// TestTypeScriptCompiles has the TypeScript compiler check the client and its examples, and
// compares the declarations that it makes of the client with those that are checked in.
func TestTypeScriptCompiles(t *testing.T) {
	node, compiler := tool(t, "node", 20), filepath.Join("node_modules", "typescript", "bin", "tsc")
	if _, err := os.Stat(filepath.Join(root, "sdk/typescript", compiler)); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the TypeScript compiler is not installed: npm ci in sdk/typescript, or make test, does it")
		}
		t.Skip("tsc is not installed: npm ci in sdk/typescript, or make test, does it")
	}
	made := t.TempDir()
	run(t, "sdk/typescript", "", nil, node, compiler, "--outDir", made)
	run(t, "sdk/typescript", "", nil, node, compiler, "-p", "tsconfig.examples.json")
	paths, err := filepath.Glob(filepath.Join(made, "*.d.ts"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("the compiler made nothing: %v", err)
	}
	for _, path := range paths {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		got, err := os.ReadFile(filepath.Join(root, "sdk/typescript/types", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("types/%s is not what the source says (%v): cd sdk/typescript && npm run types", name, err)
		}
	}
}

// TestPythonTypesCheck has mypy check the Python client, where it is installed.
func TestPythonTypesCheck(t *testing.T) {
	path, err := exec.LookPath("mypy")
	if err != nil {
		t.Skip("mypy is not installed (Debian, Ubuntu: apt-get install mypy)")
	}
	run(t, "sdk/python", "", nil, path, "--strict", "--python-version", "3.10", "--cache-dir", t.TempDir(), "mneme", "examples", "tools")
}

// TestReadmes runs what the clients' own pages print, word for word but for the address.
func TestReadmes(t *testing.T) {
	for _, tt := range []struct{ dir, block, program, flag string }{
		{"sdk/python", "python", "python3", "-c"},
		{"sdk/typescript", "js", "node", "--eval"},
	} {
		t.Run(tt.block, func(t *testing.T) {
			page, err := os.ReadFile(filepath.Join(root, tt.dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			blocks := regexp.MustCompile("(?s)```"+tt.block+"\n(.*?)```").FindAllSubmatch(page, -1)
			if len(blocks) == 0 {
				t.Fatal("the page has no code")
			}
			for _, block := range blocks {
				code := bytes.ReplaceAll(block[1], []byte("http://127.0.0.1:8787"), []byte(node(t).http))
				args := []string{tt.flag, string(code)}
				if tt.block == "js" {
					args = append([]string{"--input-type=module"}, args...)
				}
				out := run(t, tt.dir, "", []string{"PYTHONPATH=."}, tool(t, tt.program), args...)
				if !bytes.Contains([]byte(out), []byte("deploys happen on")) {
					t.Errorf("%s\nprinted %q", code, out)
				}
			}
		})
	}
}
