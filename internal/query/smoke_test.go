package query

import (
	"context"
	"testing"

	"mneme/memory"
)

func TestSmoke(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", map[string]string{"embedder.space": builtinSpace})
	w.one("team", "ann", "Deploys happen on Tuesdays after the stand-up.")
	w.one("team", "bob", "The database password rotates monthly.")
	res := w.search("team", "", memory.SearchRequest{Query: "when do we deploy", Explain: true})
	for _, h := range res.Results {
		t.Logf("%.3f v%.3f t%.3f %v %s %+v", h.Score, h.VectorScore, h.TextScore, h.MatchedBy, h.Text, h.Explain)
	}
	if len(res.Results) != 2 || res.Results[0].Agent != "ann" || res.Mode != memory.ModeHybrid {
		t.Fatalf("%+v", res)
	}
	if _, err := w.svc.Namespace(context.Background(), "team"); err != nil {
		t.Fatal(err)
	}
}
