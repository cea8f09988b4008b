package verbs

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"mneme/memory"
)

// How often progress prints a line where there is no terminal, and draws the
// bar where there is one.
const (
	plainEvery = 2 * time.Second
	barEvery   = 100 * time.Millisecond
)

// progress shows how far long work has come, on standard error: a bar on a
// terminal, a line now and then elsewhere, nothing with --json or -q.
type progress struct {
	a      *app
	what   string
	silent bool
	bar    *progressbar.ProgressBar // nil off a terminal or before the first report
	tty    bool
	total  uint64
	last   time.Time // when shown was
	shown  memory.Progress
	latest memory.Progress
}

func (a *app) progress(what string) *progress {
	return &progress{
		a: a, what: what,
		silent: a.flags.json || a.flags.quiet,
		tty:    a.sys.isTerminal(a.sys.err) && a.sys.getenv("TERM") != "dumb",
	}
}

// report takes the newest state.
func (p *progress) report(now memory.Progress) {
	if p.silent {
		return
	}
	p.latest = now
	every := plainEvery
	if p.tty {
		every = barEvery
	}
	if t := p.a.sys.now(); p.last.IsZero() || t.Sub(p.last) >= every {
		p.show(now)
		p.last = t
	}
}

func (p *progress) show(now memory.Progress) {
	p.shown = now
	if p.tty {
		p.draw(now)
		return
	}
	p.line(now)
}

// finish shows the last state and leaves the bar's line.
func (p *progress) finish() {
	if p.latest != p.shown {
		p.show(p.latest)
	}
	if p.bar != nil {
		_ = p.bar.Exit()
		_, _ = fmt.Fprintln(p.a.sys.err)
		p.bar = nil
	}
}

func (p *progress) line(now memory.Progress) {
	unit := now.Unit
	if unit != "" {
		unit = " " + unit
	}
	if now.Total == 0 {
		_, _ = fmt.Fprintf(p.a.sys.err, "%s: %d%s\n", p.what, now.Done, unit)
		return
	}
	_, _ = fmt.Fprintf(p.a.sys.err, "%s: %d/%d%s\n", p.what, now.Done, now.Total, unit)
}

func (p *progress) draw(now memory.Progress) {
	if p.bar == nil || p.total != now.Total {
		p.total = now.Total
		limit := int64(now.Total)
		if limit == 0 {
			limit = -1
		}
		p.bar = progressbar.NewOptions64(limit,
			progressbar.OptionSetWriter(p.a.sys.err),
			progressbar.OptionSetDescription(p.what),
			progressbar.OptionShowCount(),
			progressbar.OptionShowBytes(now.Unit == "bytes"),
			progressbar.OptionSetWidth(30),
			progressbar.OptionSetRenderBlankState(true),
			// Without a ticker of its own the bar needs no goroutine.
			progressbar.OptionSpinnerCustom([]string{"-", "\\", "|", "/"}),
			progressbar.OptionSetSpinnerChangeInterval(0),
		)
	}
	_ = p.bar.Set64(int64(now.Done)) // a bar that cannot be drawn is no reason to stop
}
