package load

import (
	"encoding/json"
	"fmt"

	"mneme/memory"
)

// CheckAck reads the answer to a NATS request.
func CheckAck(data []byte) error {
	var ack struct {
		Status memory.ItemStatus `json:"status"`
		Record string            `json:"record_id"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return fmt.Errorf("%w: %w: %.200s", ErrNotAcked, err, data)
	}
	if ack.Status != memory.StatusCreated || ack.Record == "" {
		return fmt.Errorf("%w: %.200s", ErrNotAcked, data)
	}
	return nil
}
