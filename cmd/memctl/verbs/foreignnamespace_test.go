package verbs

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/project"
)

// TestAProxysNotFoundPassedForAMissingNamespace: it was to be created, and `project use --create` chose it all the same.
func TestAProxysNotFoundPassedForAMissingNamespace(t *testing.T) {
	for _, verb := range []string{"use shop", "project use shop", "project use shop --create", "namespace delete shop --yes", "integrate claude-code -n shop"} {
		dir := t.TempDir()
		if err := makeRepository(filepath.Join(dir, "p"), "https://github.com/acme/p"); err != nil {
			t.Fatal(err)
		}
		addr, asked := answering(t, http.StatusNotFound, "<html>")
		var out, errs bytes.Buffer
		sys := userSystem(dir, "p", addr, &out, &errs)
		code := run(t.Context(), sys, strings.Fields(verb))
		said := out.String() + errs.String()
		if integrate := strings.HasPrefix(verb, "integrate"); integrate != (code == 0) || !strings.Contains(said, "is that a memnode?") {
			t.Errorf("%s ends with %d: %s", verb, code, said)
		}
		for _, wrong := range []string{"create it with", "--create` makes", "namespace list`", "no namespace"} {
			if strings.Contains(said, wrong) {
				t.Errorf("%s: %s", verb, said)
			}
		}
		if all := strings.Join(asked(), ", "); strings.Contains(all, "POST") || strings.Contains(all, "DELETE") || all == "" {
			t.Errorf("%s asks for %s", verb, all)
		}
		m, err := project.ReadMapping(filepath.Join(dir, "config", "mneme", "projects.json"))
		if err != nil || strings.HasPrefix(verb, "project use") && len(m.Projects) != 0 {
			t.Errorf("%s chose %v, %v", verb, m.Projects, err)
		}
	}
}
