package main

import (
	"encoding/json"
	"fmt"

	"mneme/memory"
)

// checkAck reads the answer to a NATS request.
func checkAck(data []byte) error {
	var ack struct {
		Status memory.ItemStatus `json:"status"`
		Record string            `json:"record_id"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return fmt.Errorf("%w: %w: %.200s", errNotAcked, err, data)
	}
	if ack.Status != memory.StatusCreated || ack.Record == "" {
		return fmt.Errorf("%w: %.200s", errNotAcked, data)
	}
	return nil
}
