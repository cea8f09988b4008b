package k8s

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// settings are the variables that memnode knows, as it says itself, and those that are
// memctl's in the pod.
func settings(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("go", "run", "./cmd/memnode", "config", "--json")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "MNEME_DATA_DIR="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Settings []struct {
			Name string `json:"name"`
		} `json:"settings"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	known := []string{"MNEME_NAMESPACES", "MNEME_ADDR"}
	for _, s := range doc.Settings {
		known = append(known, "MNEME_"+strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")))
	}
	if len(known) < 30 {
		t.Fatalf("memnode has %d settings", len(known))
	}
	return known
}
func seconds(t *testing.T, words string) int64 {
	t.Helper()
	d, err := time.ParseDuration(words)
	if err != nil {
		t.Fatal(err)
	}
	return int64(d / time.Second)
}
