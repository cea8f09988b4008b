package derive

import "mneme/internal/events"

// SetProbe has f look at each event before it is derived.
func (d *Deriver) SetProbe(f func(*events.Envelope)) { d.probe = f }
