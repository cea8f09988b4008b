package query

import (
	"fmt"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/settings"
	"mneme/memory"
)

// A memory whose vector is still to come was pushed out of hybrid results by any
// ten that had theirs.
func TestPendingVectorDoesNotHide(t *testing.T) {
	space := embed.Space{Provider: embed.ProviderOllama, Model: "m", Dimensions: 3, Normalised: true, Version: 1}
	w := newWorld(t, func(opt *options) { opt.Embedders = &outside{space: space} })
	w.Namespace("team", map[string]string{settings.EmbedderSpace: settings.EncodeSpace(space)})
	for i := range 30 {
		id := w.One("team", "ann", fmt.Sprintf("note a%d says that the deploy went well", i))
		w.attach("team", id, 1, "ann", events.ScopeTeam, []float32{0.6, 0.8, 0}) // as near as can be
	}
	text := "note b7 says that the deploy went well"
	waiting := w.One("team", "ann", text)
	limit := 10
	res := w.search("team", "", memory.SearchRequest{Query: text, Limit: &limit, All: true, Explain: true})
	if res.Mode != memory.ModeHybrid || len(res.Results) != limit || res.Results[0].ID != waiting {
		t.Fatalf("%s: %+v", res.Mode, res.Results)
	}
	for _, h := range res.Results {
		if err := checkExplain(&h); err != nil {
			t.Error(err)
		}
	}
}
