package node

import (
	"context"
	"sync/atomic"
	"testing"

	"mneme/internal/api"
	"mneme/internal/embed"
	"mneme/internal/raftfsm"
	"mneme/internal/replica"
	"mneme/internal/settings"
	"mneme/memory"
)

// givenModel is an embedder that a test gives to a node.
type givenModel struct {
	space embed.Space
	texts atomic.Int64
}

func (m *givenModel) For(_ context.Context, s embed.Space) (embed.Embedder, error) {
	m.space = s
	return m, nil
}

func (m *givenModel) Space() embed.Space { return m.space }
func (m *givenModel) Close() error       { return nil }

func (m *givenModel) Embed(_ context.Context, _ embed.Purpose, texts []string) ([][]float32, error) {
	m.texts.Add(int64(len(texts)))
	out := make([][]float32, len(texts))
	for i := range texts {
		out[i] = make([]float32, m.space.Dimensions)
		out[i][0] = 1
	}
	return out, nil
}

// A node uses the parts that it is given: no server of a model is asked here, and
// the Raft group is the test's.
func TestNodeOfGivenParts(t *testing.T) {
	m := &givenModel{}
	var group replica.Group
	cfg := quiet(t.TempDir())
	cfg.Environment = func(name string) (string, bool) {
		v, ok := map[string]string{"OPENAI_API_KEY": "key"}[name]
		return v, ok
	}
	cfg.Parts.Embedders = m
	cfg.Parts.Group = func(opt raftfsm.Options) (replica.Group, error) {
		g, err := raftfsm.Open(opt)
		group = g
		return g, err
	}
	n := open(t, cfg)
	if n.served[0].replica.Group() != group || group == nil {
		t.Error("it has a Raft group of its own")
	}
	_, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "outside", Settings: map[string]string{
		settings.EmbedderProvider: embed.ProviderOpenAI, settings.EmbedderModel: "text-embedding-3-small", settings.EmbedderDimensions: "8"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := n.writes.Capture(t.Context(), "outside", []memory.Capture{{Agent: "tester", Text: "given"}},
		api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitSearchable)
	if err != nil || r.Vectors != "" || m.texts.Load() == 0 {
		t.Errorf("%+v, %v, %d texts", r, err, m.texts.Load())
	}
}
