package memory

import (
	"strings"
	"testing"
)

// TestRefusalsNameTheValue: an actor that no agent can be gave no rows, a bad
// min_score was not repeated.
func TestRefusalsNameTheValue(t *testing.T) {
	for value, err := range map[string]*Error{
		"A b": (&AuditRequest{Actor: "A b"}).Validate(),
		"1.5": (&SearchRequest{Query: "x", MinScore: ptr(1.5)}).Validate(),
	} {
		if err == nil || err.Code != CodeInvalid || !strings.Contains(err.Message, value) {
			t.Errorf("%s: %v", value, err)
		}
	}
	if err := (&AuditRequest{Actor: "agent-7"}).Validate(); err != nil {
		t.Error(err)
	}
}
