package main

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"mneme/internal/node"
	"mneme/memory"
)

// running is what memnode may change while its node runs: the settings that are marked so.
type running struct {
	sys system
	log logging

	mu  sync.Mutex
	now *settings // in effect
}

func newRunning(sys system, s *settings) *running {
	return &running{sys: sys, now: s, log: newLogging(sys.err, s.String("log-level"), s.String("log-format"))}
}

// process is what the node hears of this program.
func (r *running) process() node.Process {
	return node.Process{Reread: r.reread, Settings: r.settings, Log: r.lastLines, MemoryLimit: memoryLimit}
}

// reread reads flags, environment and file again. What was given by flags and environment is
// what the process was started with.
func (r *running) reread() (node.Live, memory.ReloadReport, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := memory.ReloadReport{Settings: []memory.ReloadedSetting{}}
	next, err := r.now.again()
	if err == nil {
		err = next.nodeConfig(r.sys).Check()
	}
	if err != nil {
		return node.Live{}, report, err
	}
	if next.found {
		report.File = next.file
	}
	for _, o := range r.now.opts {
		from, to := r.now.Get(o.name), next.Get(o.name)
		if reflect.DeepEqual(from, to) {
			continue
		}
		report.Settings = append(report.Settings, memory.ReloadedSetting{Name: o.name, From: words(o, from), To: words(o, to), Applied: o.reloads})
		if o.reloads { // else it is told again until it counts
			_ = r.now.Set(o.name, to) // it fails only for nested keys
			r.now.origins[o.name] = next.origins[o.name]
		}
	}
	r.log.setLevel(r.now.String("log-level"))
	return r.now.live(), report, nil
}

// words are a value for people, without secrets.
func words(o option, v any) string {
	if many, ok := hide(o, v).([]string); ok {
		return strings.Join(many, ",")
	}
	return fmt.Sprint(hide(o, v))
}

// settings are those in effect, without secrets.
func (r *running) settings() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.doc(r.sys)
}

// lastLines are those of the log, without secrets that a line might hold all the same.
func (r *running) lastLines() []byte {
	r.mu.Lock()
	secrets := r.now.secrets(r.sys)
	r.mu.Unlock()
	text := r.log.recent.text()
	for _, secret := range secrets {
		text = bytes.ReplaceAll(text, []byte(secret), []byte(redacted))
	}
	return text
}

// reload does what a hangup asks for; what was read is logged by the node.
func reload(ctx context.Context, cfg node.Config, n instance) {
	if _, err := n.Reload(ctx); err != nil {
		cfg.Logger.Error("nothing was read again", "err", err)
	}
}
