package hooks

import (
	"errors"
	"io/fs"
	"time"

	"mneme/internal/recall"
)

const (
	journalName     = "recalls"
	maxJournal      = 100 // recalls that are remembered
	maxJournalQuery = 200 // characters of a query in it
)

// Recalled is one time that memories were looked for on an agent's behalf.
type Recalled struct {
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace"`
	Agent     string    `json:"agent"` // the host
	Event     string    `json:"event"`
	Query     string    `json:"query"`
	// Outcome is injected, nothing found, given before, no room, node left alone, failed with the code of
	// the error, or out of time where the hook's own ended first.
	Outcome     string        `json:"outcome"`
	Tokens      int           `json:"tokens"`
	Hits        []RecalledHit `json:"hits"` // that were injected
	BestRefused float64       `json:"best_refused,omitempty"`
	TookMS      float64       `json:"took_ms"`
}

// RecalledHit is a memory that was injected.
type RecalledHit recall.Used

// journal is the document of the last recalls, oldest first.
type journal struct {
	Recalls []Recalled `json:"recalls"`
}

// journalLocked adds one. The lock is held.
func (d *Disk) journalLocked(made Recalled) error {
	var j journal
	_ = d.load(journalName, &j) // one that does not open is begun anew
	j.Recalls = append(j.Recalls, made)
	j.Recalls = j.Recalls[max(0, len(j.Recalls)-maxJournal):]
	return d.save(journalName, j)
}

// Recalls returns the last recalls, oldest first.
func (d *Disk) Recalls() ([]Recalled, error) {
	var j journal
	err := d.load(journalName, &j)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return j.Recalls, err
}
