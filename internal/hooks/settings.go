package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mneme/internal/recall"
	"mneme/memory"
)

// Settings is what the user decided about hooks.
type Settings struct {
	Capture bool         `json:"capture"` // keep anything
	Recall  bool         `json:"recall"`  // put memories into prompts
	Tools   bool         `json:"tools"`   // keep what tools did, too
	Budget  int          `json:"budget"`  // tokens of a block
	Emails  bool         `json:"emails"`  // keep addresses; without, they are taken out like secrets
	Scope   memory.Scope `json:"scope"`   // of what is kept
	Start   bool         `json:"start"`   // have a node started where none runs

	unread bool
}

// DefaultSettings are those of a user who decided nothing.
func DefaultSettings() Settings {
	return Settings{Capture: true, Recall: true, Tools: true, Budget: recall.DefaultBudget, Emails: true, Scope: memory.ScopeTeam, Start: true}
}

// UnreadSettings are those of a user whose decisions cannot be read: what is kept waits until they can, and is sent
// if they have it so. Nothing else is done.
func UnreadSettings() Settings {
	s := DefaultSettings()
	s.Recall, s.Emails, s.Start, s.Scope, s.unread = false, false, false, memory.ScopeAgent, true
	return s
}

// SettingNames are the names that Set takes.
var SettingNames = []string{"capture", "recall", "tools", "budget", "emails", "scope", "start"}

// minBudget has room for a memory: what stands around those of a block takes some 60 tokens.
const minBudget = 100

// Set changes one of them.
func (s *Settings) Set(name, value string) error {
	flags := map[string]*bool{"capture": &s.Capture, "recall": &s.Recall, "tools": &s.Tools, "emails": &s.Emails, "start": &s.Start}
	switch {
	case flags[name] != nil:
		switch value {
		case "on", "true":
			*flags[name] = true
		case "off", "false":
			*flags[name] = false
		default:
			return memory.Errorf(memory.CodeInvalid, "%s is %q, it must be on or off", name, value)
		}
	case name == "budget":
		n, err := strconv.Atoi(value)
		if err != nil || n < minBudget || n > 10_000 {
			return memory.Errorf(memory.CodeInvalid, "budget is %q, it must be a number of tokens from %d to 10000", value, minBudget)
		}
		s.Budget = n
	case name == "scope":
		if value != string(memory.ScopeTeam) && value != string(memory.ScopeAgent) {
			return memory.Errorf(memory.CodeInvalid, "scope is %q, it must be team or agent", value)
		}
		s.Scope = memory.Scope(value)
	default:
		return memory.Errorf(memory.CodeInvalid, "hooks have no setting %q", name).WithHint("settings are %s", strings.Join(SettingNames, ", "))
	}
	return nil
}

// LoadSettings reads the file; without one they are the defaults. One that is damaged may have said
// anything: see UnreadSettings.
func LoadSettings(path string) (Settings, error) {
	s := DefaultSettings()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		err = dec.Decode(&s)
	}
	if err != nil {
		return Settings{}, memory.Errorf(memory.CodeInvalid, "the settings of hooks in %s: %w", path, err).
			WithHint("correct the file, or delete it: without it hooks keep and recall")
	}
	return s, nil
}

// SaveSettings writes the file.
func SaveSettings(path string, s Settings) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := makeDir(systemFiles{}, filepath.Dir(path)); err != nil {
		return fmt.Errorf("make the configuration directory: %w", err)
	}
	if err := writeFile(systemFiles{}, path, append(b, '\n'), true); err != nil {
		return fmt.Errorf("write the settings of hooks: %w", err)
	}
	return nil
}
