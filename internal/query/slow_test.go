package query

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mneme/internal/query/views"
	"mneme/memory"
)

// slowLines runs a search with a threshold and returns what was logged.
func slowLines(t *testing.T, over time.Duration, text bool, req memory.SearchRequest) string {
	t.Helper()
	var logged bytes.Buffer
	slow := &Slow{}
	slow.Set(over, text)
	w := newWorld(t, func(o *options) { o.Logger, o.Slow = slog.New(slog.NewJSONHandler(&logged, nil)), slow })
	w.Namespace("team", withBuiltin())
	w.Capture("team", memory.Capture{Agent: "ann", Text: "deploys of the marmalade service happen on Tuesdays"}, memory.Capture{Agent: "ann", Text: "lunch is at noon"})
	r, err := w.svc.Open(context.Background(), "team", "", views.Freshness{})
	w.OK(err)
	_, err = r.Search(context.Background(), req)
	if err != nil && memory.CodeOf(err) != memory.CodeInvalid {
		t.Fatal(err)
	}
	w.OK(r.Close())
	return logged.String()
}

func TestSlowSearchesAreLoggedWithTheirPlan(t *testing.T) {
	since := time.Unix(0, 0)
	req := memory.SearchRequest{Query: `when are "marmalade service" deploys`, Filter: &memory.Filter{Since: &since, Tags: nil}}
	line := slowLines(t, 1, false, req)
	var got struct {
		Msg, Position, Mode string
		Namespaces          []string
		Took, Limit, Hits   int64
		Plan                struct {
			Words, Phrases int
			FoundByText    int `json:"found_by_text"`
			ByVector       bool
			Filter         []string
		}
		Stages struct{ Find, Open int64 }
	}
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if got.Msg != "slow search" || got.Mode != "hybrid" || got.Position == "" || got.Namespaces[0] != "team" || got.Took == 0 || got.Plan.Words == 0 ||
		got.Plan.Phrases != 1 || got.Plan.FoundByText != 1 || got.Hits != 1 || len(got.Plan.Filter) != 1 || got.Plan.Filter[0] != "since" || got.Stages.Find == 0 {
		t.Errorf("%+v of %s", got, line)
	}
	for _, canary := range []string{"marmalade", "Tuesdays", "deploys"} {
		if strings.Contains(line, canary) {
			t.Errorf("the line holds text: %s", line)
		}
	}
	if line := slowLines(t, 1, true, req); !strings.Contains(line, "marmalade service") || strings.Contains(line, "Tuesdays") {
		t.Errorf("the query is asked for: %s", line)
	}
	if line := slowLines(t, 0, true, req); line != "" {
		t.Errorf("none is asked for: %s", line)
	}
	if line := slowLines(t, time.Hour, true, req); line != "" {
		t.Errorf("none is slow: %s", line)
	}
	if line := slowLines(t, 1, false, memory.SearchRequest{Query: " "}); !strings.Contains(line, `"code":"invalid"`) {
		t.Errorf("one that failed: %s", line)
	}
}
