package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// example is one example in one language.
type example struct {
	language, dir, program string
	args                   []string
}

// examples are the examples of a name in all three languages.
func examples(t *testing.T, name string, each func(t *testing.T, e example)) {
	absolute, err := filepath.Abs(filepath.Join(root, "sdk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"go", "python", "typescript"} {
		t.Run(language, func(t *testing.T) {
			e := example{language: language, dir: "."}
			switch language {
			case "go":
				e.program = filepath.Join(programs, name)
			case "python":
				e.dir, e.program, e.args = "sdk/python", tool(t, "python3", 3, 10), []string{filepath.Join(absolute, "python/examples", name+".py")}
			case "typescript":
				e.dir, e.program, e.args = "sdk/typescript", tool(t, "node", 20), []string{filepath.Join(absolute, "typescript/examples", name+".js")}
			}
			each(t, e)
		})
	}
}

// env is what an example knows of the node, and of where the Python client lies.
func (e *example) env(t *testing.T, namespace string, more ...string) []string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "sdk/python"))
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"MNEME_ADDR=" + node(t).http, "MNEME_NAMESPACE=" + namespace, "PYTHONPATH=" + path}, more...)
}

// team makes a namespace on the shared node.
func team(t *testing.T, name string) *client.Client {
	t.Helper()
	c, err := client.New(node(t).http, client.Options{Agent: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.CreateNamespace(t.Context(), memory.CreateNamespace{Name: name}); err != nil {
		t.Fatal(err)
	}
	return c
}

// model stands in for a model: it answers with what it was told by the system, or says that
// it was told nothing.
func model(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model    string `json:"model"`
			Messages []struct {
				Role    string `json:"role"`
				Content string `json:"content"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.Method != "POST" || r.URL.Path != "/v1/chat/completions" ||
			r.Header.Get("Authorization") != "Bearer key" || asked.Model != "stub" || len(asked.Messages) == 0 || asked.Messages[len(asked.Messages)-1].Role != "user" {
			http.Error(w, fmt.Sprintf("not a request for a completion: %v %+v", err, asked), http.StatusBadRequest)
			return
		}
		answer := "I was told nothing."
		if strings.HasPrefix(asked.Messages[len(asked.Messages)-1].Content, "Talk") {
			answer = strings.Repeat("at length ", 30_000)
		} else if first := asked.Messages[0]; first.Role == "system" {
			_, recalled, _ := strings.Cut(first.Content, "\n")
			answer = "I was told: " + strings.ReplaceAll(recalled, "\n", " ")
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": answer}}}})
	}))
	t.Cleanup(s.Close)
	return s
}

// TestChatExample: a second conversation recalls what the first one said, and where nothing
// fits the model is told nothing.
func TestChatExample(t *testing.T) {
	stub := model(t)
	examples(t, "chat", func(t *testing.T, e example) {
		namespace := "chat-" + e.language
		mem := team(t, namespace)
		env := e.env(t, namespace, "OPENAI_BASE_URL="+stub.URL+"/v1/", "OPENAI_API_KEY=key", "OPENAI_MODEL=stub")
		say := func(line string) string { return run(t, e.dir, line+"\n\n", env, e.program, e.args...) }
		if got := say("The staging database is reset every night."); got != "I was told nothing.\n" {
			t.Errorf("the first conversation: %q", got)
		}
		if got := say("When is the staging database reset?"); !strings.HasPrefix(got, `I was told: - "The staging database is reset every night."`) {
			t.Errorf("the second conversation: %q", got)
		}
		if got := say("Xylophone, zebra, quartz!"); got != "I was told nothing.\n" {
			t.Errorf("where nothing fits: %q", got)
		}
		list, err := mem.List(t.Context(), namespace, client.ListOptions{})
		if err != nil || len(list.Records) != 6 {
			t.Fatalf("%d memories, %v", len(list.Records), err)
		}
		first := list.Records[5]
		if first.Text != "The staging database is reset every night." || first.Role != "user" || first.Agent != "chat" || first.Kind != memory.KindMessage || first.Conversation == "" ||
			first.Conversation != list.Records[4].Conversation || first.Conversation == list.Records[3].Conversation || list.Records[4].Role != "assistant" {
			t.Errorf("%+v", list.Records)
		}
	})
}

// TestChatExampleSaysWhatWasRefused: an answer that is too large for a memory is told, and
// so is a node or a model that is away, in one line.
func TestChatExampleSaysWhatWasRefused(t *testing.T) {
	stub := model(t)
	examples(t, "chat", func(t *testing.T, e example) {
		namespace := "refused-" + e.language
		mem := team(t, namespace)
		chat := func(more ...string) (said string, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, e.program, e.args...)
			cmd.Env = environment(t.TempDir(), e.env(t, namespace, append([]string{"OPENAI_BASE_URL=" + stub.URL + "/v1/", "OPENAI_API_KEY=key", "OPENAI_MODEL=stub"}, more...)...)...)
			cmd.Stdin = strings.NewReader("Talk to me.\n")
			var errs strings.Builder
			cmd.Stderr = &errs
			err = cmd.Run()
			return errs.String(), err
		}
		said, err := chat()
		if err != nil || !strings.HasPrefix(said, "chat: not remembered: ") || strings.Count(said, "\n") != 1 {
			t.Errorf("%v, said %q", err, said)
		}
		list, err := mem.List(t.Context(), namespace, client.ListOptions{})
		if err != nil || len(list.Records) != 1 || list.Records[0].Role != "user" {
			t.Errorf("%+v, %v", list.Records, err)
		}
		odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := map[string]string{"/none/chat/completions": `{"choices":[]}`, "/page/chat/completions": "<html>", "/cut/chat/completions": `{"choices":`, "/other/chat/completions": `[7]`}[r.URL.Path]
			if answer == "" {
				w.WriteHeader(http.StatusTeapot)
			}
			_, _ = io.WriteString(w, answer)
		}))
		defer odd.Close()
		for what, at := range map[string]string{"no node": "MNEME_ADDR=http://127.0.0.1:1", "no node's address": "MNEME_ADDR=ftp://x", "no model": "OPENAI_BASE_URL=http://127.0.0.1:1/v1", "no address": "OPENAI_BASE_URL=model",
			"no choices": "OPENAI_BASE_URL=" + odd.URL + "/none", "a page": "OPENAI_BASE_URL=" + odd.URL + "/page", "half an answer": "OPENAI_BASE_URL=" + odd.URL + "/cut",
			"another answer": "OPENAI_BASE_URL=" + odd.URL + "/other", "a refusal": "OPENAI_BASE_URL=" + odd.URL} {
			said, err = chat(at)
			if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 1 || !strings.HasPrefix(said, "chat: ") || strings.Count(said, "\n") != 1 || strings.Contains(said, "%!") {
				t.Errorf("%s: %v, said %q", what, err, said)
			}
		}
	})
}

// TestTeamExample: two agents share what is the team's, and not what is one's own.
func TestTeamExample(t *testing.T) {
	examples(t, "team", func(t *testing.T, e example) {
		namespace := "shared-" + e.language
		team(t, namespace)
		got := run(t, e.dir, "", e.env(t, namespace), e.program, e.args...)
		decision, private := "- decision, from planner: The API is versioned in its path: /v1, /v2.\n", "- other, from planner: Ask Ann about the API budget.\n"
		builder, planner, found := strings.Cut(got, "planner finds:\n")
		if !found || builder != "planner decided: created\nbuilder finds:\n"+decision || !strings.Contains(planner, decision) || !strings.Contains(planner, private) {
			t.Errorf("%s", got)
		}
	})
}

// TestExamplesSayThatANodeIsAway, or has no such namespace, in one line.
func TestExamplesSayThatANodeIsAway(t *testing.T) {
	for _, name := range []string{"team", "follow"} {
		examples(t, name, func(t *testing.T, e example) {
			for _, at := range []string{"MNEME_ADDR=http://127.0.0.1:1", "MNEME_ADDR=ftp://x", "MNEME_NAMESPACE=nowhere"} {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				cmd := exec.CommandContext(ctx, e.program, e.args...)
				cmd.Env = environment(t.TempDir(), e.env(t, "default", at)...)
				var said strings.Builder
				cmd.Stderr = &said
				err := cmd.Run()
				if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 1 || !strings.HasPrefix(said.String(), name+": ") || strings.Count(said.String(), "\n") != 1 {
					t.Errorf("%s, %s: %v, said %q", name, at, err, said.String())
				}
			}
		})
	}
}

// TestFollowExample: a feed shows what was before it began and what happens while it is
// followed.
func TestFollowExample(t *testing.T) {
	examples(t, "follow", func(t *testing.T, e example) {
		namespace := "feed-" + e.language
		mem := team(t, namespace)
		capture := func(text string) memory.CaptureResult {
			r, err := mem.Capture(t.Context(), namespace, memory.Capture{Text: text}, client.CaptureOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return r.Results[0]
		}
		before := capture("before")
		cmd := exec.Command(e.program, append(e.args, before.Position)...)
		cmd.Env = environment(t.TempDir(), e.env(t, namespace)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		cmd.Stderr = &said
		early := capture("early")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		expect := func(want string) {
			t.Helper()
			if !lines.Scan() || strings.TrimSpace(lines.Text()) != want {
				t.Errorf("%q, want %q", lines.Text(), want)
			}
		}
		expect(early.Position + " memory.captured tester early")
		late := capture("late")
		expect(late.Position + " memory.captured tester late")
		gone, err := mem.Forget(t.Context(), namespace, late.RecordID, client.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), gone.Position+" memory.forgotten") {
			t.Errorf("%q", lines.Text())
		}
		stuck.Stop()
		_ = cmd.Process.Kill() // it runs until it is ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
}
