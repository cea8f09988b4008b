package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/internal/hooks"
	"mneme/internal/redact"
)

const (
	wantedHook  = 50 // ms
	wantedStart = 20
	wantedSize  = 25 // MB
	megabyte    = 1e6
)

// timed is a command that is started again and again.
type timed struct {
	what     string
	wanted   float64 // ms; 0: none
	command  func(i int) *exec.Cmd
	took     []float64
	answered int // how often it printed something
}

// once runs it from its start to its end, as a host waits for it.
func (t *timed) once(i int) error {
	cmd := t.command(i)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil || said.Len() > 0 {
		return fmt.Errorf("%s: %v: %s", t.what, err, said.String())
	}
	t.took = append(t.took, report.Millis(took))
	if out.Len() > 0 {
		t.answered++
	}
	return nil
}

// inTurns runs all of them one after the other, again and again, and adds a row for each.
func (b *bench) inTurns(n int, detail func(t *timed) string, all ...*timed) error {
	for _, t := range all { // what is read from disk for the first time
		if err := t.once(0); err != nil {
			return err
		}
		t.took, t.answered = nil, 0
	}
	for i := range n {
		for _, t := range all {
			if err := t.once(i + 1); err != nil {
				return err
			}
		}
	}
	for _, t := range all {
		said := fmt.Sprintf("p95 %s ms, %d in turns", report.Number(stats.Percentile(t.took, 95)), n)
		if more := detail(t); more != "" {
			said += ", " + more
		}
		if t.wanted > 0 {
			b.table.AtMost(t.what+", median", t.wanted, stats.Median(t.took), "ms", said)
		} else {
			b.table.Info(t.what+", median", stats.Median(t.took), "ms", said)
		}
	}
	return nil
}

// hooks measures memctl hook as a host calls it, on the namespace that was searched.
func (b *bench) hooks(ctx context.Context) error {
	if err := b.fill(ctx, b.opt.records); err != nil {
		return err
	}
	plain, worth, err := b.prompts(b.opt.hooks + 1)
	if err != nil {
		return err
	}
	project := filepath.Join(b.dir, "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		return err
	}
	host := func(fields map[string]any) *exec.Cmd {
		fields["cwd"], fields["transcript_path"] = project, filepath.Join(project, "transcript.jsonl")
		payload, _ := json.Marshal(fields) // strings alone
		cmd := b.command(ctx, "hook", "--agent", hooks.ClaudeCode)
		cmd.Env = append(cmd.Env, "MNEME_NAMESPACE="+load.Namespace)
		cmd.Dir, cmd.Stdin = project, bytes.NewReader(payload)
		return cmd
	}
	prompt := func(kind string, texts []string) func(i int) *exec.Cmd {
		return func(i int) *exec.Cmd {
			return host(map[string]any{"hook_event_name": "UserPromptSubmit", "session_id": fmt.Sprint(kind, i/10), "prompt": texts[i]})
		}
	}
	before, err := b.api.Namespace(ctx, load.Namespace)
	if err != nil {
		return err
	}
	if err := b.inTurns(b.opt.hooks, func(t *timed) string { return fmt.Sprintf("%d recalled something", t.answered) },
		&timed{what: "hook, a prompt of which nothing is kept", wanted: wantedHook, command: prompt("plain", plain)},
		&timed{what: "hook, a prompt that is kept", wanted: wantedHook, command: prompt("kept", worth)},
		&timed{what: "hook, a session that begins", wanted: wantedHook, command: func(i int) *exec.Cmd {
			return host(map[string]any{"hook_event_name": "SessionStart", "source": "startup", "session_id": fmt.Sprint("start", i), "initialPrompt": plain[i]})
		}},
	); err != nil {
		return err
	}
	after, err := b.api.Namespace(ctx, load.Namespace)
	if err != nil {
		return err
	}
	if kept := int(after.Records - before.Records); kept != b.opt.hooks+1 {
		return fmt.Errorf("of %d prompts that are worth it %d were kept", b.opt.hooks+1, kept)
	}
	return nil
}

// prompts are n prompts that hooks keep nothing of, and n that they keep, in words of the texts.
func (b *bench) prompts(n int) (plain, worth []string, err error) {
	seen := map[string]bool{}
	for _, q := range b.texts.Questions(20*n, questionWords, true) {
		q = strings.Join(strings.FieldsFunc(q, func(r rune) bool { return strings.ContainsRune(" \n\t.!?;:<>`", r) }), " ")
		_, secrets := redact.Text(q, redact.Options{Emails: true})
		if len(plain) == n || seen[q] || len(secrets) > 0 || len(hooks.Find(q, false)) > 0 || hooks.IsNoise(q) {
			continue
		}
		kept := "we decided that " + q
		seen[q] = true
		if len(hooks.Find(kept, false)) != 1 {
			continue
		}
		plain, worth = append(plain, q), append(worth, kept)
	}
	if len(plain) < n {
		return nil, nil, errors.New("the texts give too few prompts")
	}
	return plain, worth, nil
}

// start measures how long memctl takes to begin, beside a program that does nothing, and how
// large both programs are.
func (b *bench) start(ctx context.Context) error {
	all := []*timed{{what: "memctl --version", wanted: wantedStart, command: func(int) *exec.Cmd { return b.command(ctx, "--version") }}}
	if nothing, err := exec.LookPath("true"); err == nil {
		all = append(all, &timed{what: "… true, which does nothing", command: func(int) *exec.Cmd { return exec.CommandContext(ctx, nothing) }})
	}
	if err := b.inTurns(b.opt.hooks, func(*timed) string { return "" }, all...); err != nil {
		return err
	}
	for _, program := range []string{b.memctl, b.memnode} {
		info, err := os.Stat(program)
		if err != nil {
			return err
		}
		size, name := float64(info.Size())/megabyte, "size of "+filepath.Base(program)
		if program == b.memctl {
			b.table.AtMost(name, wantedSize, size, "MB", "")
		} else {
			b.table.Info(name, size, "MB", "")
		}
	}
	return nil
}
