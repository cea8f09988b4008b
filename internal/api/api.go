// Package api holds what the transports share: the registry of what can be reached
// from outside and the right that each thing needs, the strict reading of JSON from
// outside, and what a transport knows about captures besides the items. The requests
// themselves are in package memory.
//
// Not its job: a transport's own syntax (rest, natsapi), answering.
package api

import "mneme/memory"

// CaptureOptions is what a transport knows about captures besides the items.
type CaptureOptions struct {
	Origin memory.Origin // "" = memory.OriginCapture
	// Source is the CloudEvents source of each item, "" where there was none.
	// It is nil or as long as the items.
	Source []string
}
