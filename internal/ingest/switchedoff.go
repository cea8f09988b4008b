package ingest

import (
	"errors"

	"mneme/internal/settings"
)

// admitMemories is admit for what captures or revises memories, which a namespace may have
// switched off: see takes. Close the view when done.
func admitMemories(w *Writer, namespace string) (*admission, error) {
	a, err := w.admit(namespace)
	if err != nil {
		return nil, err
	}
	set, err := w.opt.Settings.Of(a.view, a.ns)
	if err != nil {
		return nil, errors.Join(err, a.view.Close())
	}
	a.off = set.Refuses(settings.Captures, namespace)
	return a, nil
}

// takes is nil where captures are switched on, and for what is there already: whoever sends it
// again has not heard of that.
func (a *admission) takes(clientID, agent string) error {
	if a.off == nil {
		return nil
	}
	if clientID != "" {
		if _, known, err := a.view.UsedKey(a.ns.ID, a.clientMAC(clientID), agent); known || err != nil {
			return err
		}
	}
	return a.off
}
