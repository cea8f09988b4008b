package report

import (
	"encoding/json"
	"fmt"
	"os"
)

// document is the JSON of a report.
type document struct {
	Machine string   `json:"machine"`
	Tables  []*Table `json:"tables"`
}

// WriteJSON writes the machine's line and the tables to a file, if its name is
// not empty.
func WriteJSON(file string, machine string, tables ...*Table) error {
	if file == "" {
		return nil
	}
	b, err := json.MarshalIndent(document{Machine: machine, Tables: tables}, "", "  ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(file string) (tables []*Table, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("read report %s: %w", file, err)
	}
	return d.Tables, nil
}
