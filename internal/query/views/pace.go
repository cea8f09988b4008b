package views

import (
	"sync"
	"time"
)

// pace makes graph builders step back while writes come in quickly or vectors
// are being loaded: a search scans what is not built yet, so building can wait
// and writers need not.
type pace struct {
	mu      sync.Mutex
	now     func() time.Time
	since   time.Time // beginning of the window
	seen    int       // vectors applied in it
	rate    float64   // vectors a second in the window before
	loading bool
}

const (
	paceWindow = 500 * time.Millisecond
	paceBusy   = 300  // vectors a second from which on builders rest a little
	paceFlood  = 1000 // … and from which on they nearly stop
	restBusy   = 30 * time.Millisecond
	restFlood  = 200 * time.Millisecond
)

// applied notes new vectors.
func (p *pace) applied(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turnLocked()
	p.seen += n
}

// load says that a Load began or ended.
func (p *pace) load(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loading = on
}

// rest is how long a builder steps back after a small batch of insertions.
func (p *pace) rest() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turnLocked()
	switch {
	case p.loading, p.rate >= paceFlood:
		return restFlood
	case p.rate >= paceBusy:
		return restBusy
	}
	return 0
}

// turnLocked closes the window when it is over.
func (p *pace) turnLocked() {
	at := p.now()
	d := at.Sub(p.since)
	if d < 0 || d >= paceWindow {
		p.rate = 0
		if d >= paceWindow && d < 4*paceWindow {
			p.rate = float64(p.seen) / d.Seconds()
		}
		p.since, p.seen = at, 0
	}
}
