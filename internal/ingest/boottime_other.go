//go:build !linux

package ingest

import "time"

// sinceBoot is the time that this process runs. Whether a suspend counts is the
// system's choice.
func sinceBoot() time.Duration { return time.Since(processStart) }
