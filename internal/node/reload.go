package node

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"mneme/memory"
)

// Reload reads settings, certificates and the token again. Settings that cannot be used
// change nothing, and neither does a file that cannot: the report says so.
func (n *Node) Reload(ctx context.Context) (memory.ReloadReport, error) {
	return n.operator.Reload(ctx)
}

// Reload implements rest.Admin.
func (o *operator) Reload(context.Context) (memory.ReloadReport, error) {
	n := o.n
	n.front.reloading.Lock()
	defer n.front.reloading.Unlock()
	report := memory.ReloadReport{Settings: []memory.ReloadedSetting{}, Files: []memory.ReloadedFile{}}
	if reread := n.cfg.Process.Reread; reread != nil {
		live, read, err := reread()
		if err != nil {
			return report, memory.Errorf(memory.CodeInvalid, "the settings cannot be used, and nothing has changed: %v", err).
				WithHint("memnode config validate, given the same flags, says more")
		}
		if report = read; report.Files == nil {
			report.Files = []memory.ReloadedFile{}
		}
		n.front.times.slow.Set(live.SlowSearch, live.SlowSearchText)
		n.front.setLimits(live.Limits)
		n.front.allowed = live
		if n.cfg.Traces != nil {
			n.cfg.Traces.SetShare(live.TraceShare)
		}
	}
	if n.front.certs != nil {
		changed, err := n.front.certs.Reload()
		report.Files = append(report.Files, reloaded("certificate for "+certClients, changed, err, n.front.certs.Expires()))
	}
	if n.peers != nil {
		changed, err := n.peers.certs.Reload()
		report.Files = append(report.Files, reloaded("certificate for "+certNodes, changed, err, n.peers.certs.Expires()))
	}
	// The names may be others, too, of a certificate that was replaced.
	if err := n.front.guard.Set(slices.Concat(n.front.allowed.AllowedHosts, n.front.names()), n.front.allowed.AllowedOrigins); err != nil {
		return report, err
	}
	if n.cfg.Auth == "token" {
		report.Files = append(report.Files, o.reloadToken())
	}
	o.tellReload(report)
	return report, nil
}

func reloaded(name string, changed bool, err error, until time.Time) memory.ReloadedFile {
	switch {
	case err != nil:
		return memory.ReloadedFile{Name: name, State: memory.FileRefused, Detail: err.Error()}
	case changed:
		return memory.ReloadedFile{Name: name, State: memory.FileRead, Detail: "counts until " + until.UTC().Format(time.RFC3339)}
	}
	return memory.ReloadedFile{Name: name, State: memory.FileSame, Detail: "counts until " + until.UTC().Format(time.RFC3339)}
}

// reloadToken reads the operator token's file. A token of the environment is that of the
// process for as long as it runs.
func (o *operator) reloadToken() memory.ReloadedFile {
	n := o.n
	out := memory.ReloadedFile{Name: "operator token", State: memory.FileSame}
	if n.cfg.AuthToken != "" {
		out.Detail = "it came from the environment, and changes with a restart only"
		return out
	}
	token, err := n.changedToken()
	changed := false
	if err == nil {
		changed, err = n.gate.SetToken(token)
	}
	switch {
	case err != nil:
		out.State, out.Detail = memory.FileRefused, err.Error()
	case changed:
		out.State, out.Detail = memory.FileRead, fmt.Sprintf("%s; what the former one had open was ended", filepath.Base(n.dir.tokenFile()))
		ended, err := n.nats.EndCallers()
		if err != nil {
			out.Detail = fmt.Sprintf("%s; NATS clients of the former one are still there: %v", filepath.Base(n.dir.tokenFile()), err)
		}
		n.cfg.Logger.Info("another operator token counts", "nats_connections_ended", ended)
	}
	return out
}

// tellReload logs what was read.
func (o *operator) tellReload(r memory.ReloadReport) {
	log := o.n.cfg.Logger
	log.Info("settings and files were read again", "settings_changed", len(r.Settings), "files", len(r.Files))
	for _, s := range r.Settings {
		if s.Applied {
			log.Info("a setting has changed", "setting", s.Name, "from", s.From, "to", s.To)
		} else {
			log.Warn("a setting has changed and counts from the next start on", "setting", s.Name, "from", s.From, "to", s.To)
		}
	}
	for _, f := range r.Files {
		switch f.State {
		case memory.FileRefused:
			log.Error("a file cannot be used, and what it said before still counts", "file", f.Name, "err", f.Detail)
		case memory.FileRead:
			log.Info("a file was read again", "file", f.Name, "detail", f.Detail)
		}
	}
}
