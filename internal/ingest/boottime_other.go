//go:build !linux

package ingest

import "time"

// timeSinceBoot is the time that this process runs. Whether a suspend counts is the
// system's choice.
func timeSinceBoot() time.Duration { return time.Since(processStart) }
