package local

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mneme/internal/embed/local/localtest"
)

var modelsTo = flag.String("models", "", "write the models of TestVectorsAreThoseOfOthers to this folder, for testdata/peers.sh")

// peerModels are what others computed with too; testdata/peers.json has their answers.
func peerModels() map[string]localtest.Spec {
	models := map[string]localtest.Spec{}
	for name, change := range map[string]func(*localtest.Spec){
		"mean":  func(*localtest.Spec) {},
		"cls":   func(s *localtest.Spec) { s.Pooling = "cls" },
		"max":   func(s *localtest.Spec) { s.Pooling = "max" },
		"tanh":  func(s *localtest.Spec) { s.Activation = "gelu_new" },
		"cased": func(s *localtest.Spec) { s.Cased, s.Seed = true, 3 },
		"deep":  func(s *localtest.Spec) { s.Layers, s.Hidden, s.Heads, s.Inner, s.Seed = 6, 48, 6, 192, 9 },
	} {
		s := localtest.Tiny()
		change(&s)
		models[name] = s
	}
	return models
}

// TestVectorsAreThoseOfOthers compares with programs that others wrote: the tokens of
// the tokenizers of Hugging Face in JavaScript, and the vectors of PyTorch's layers
// for those tokens.
func TestVectorsAreThoseOfOthers(t *testing.T) {
	models := peerModels()
	if *modelsTo != "" {
		for name, s := range models {
			for file, b := range s.Files() {
				path := filepath.Join(*modelsTo, name, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		return
	}
	b, err := os.ReadFile(filepath.Join("testdata", "peers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var peers struct {
		Models map[string][]struct {
			Text   string
			Tokens []int32
			Vector []float64
		}
	}
	if err := json.Unmarshal(b, &peers); err != nil {
		t.Fatal(err)
	}
	for name, s := range models {
		t.Run(name, func(t *testing.T) {
			m := mustLoad(t, s)
			if len(peers.Models[name]) < 10 {
				t.Fatalf("%d texts", len(peers.Models[name]))
			}
			for _, p := range peers.Models[name] {
				if got := m.tokenizer.encode(nil, p.Text, m.MaxTokens()); !slices.Equal(got, p.Tokens) {
					t.Errorf("%q: tokens %v, others have %v", p.Text, got, p.Tokens)
				}
				for set, kernels := range kernelSets() {
					m.bert.kernels = kernels
					if err := near(embedAll(t, m, []string{p.Text})[0], p.Vector); err != nil {
						t.Errorf("%s, %q: %v", set, p.Text, err)
					}
				}
			}
		})
	}
}

func near(got []float32, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d dimensions, others have %d", len(got), len(want))
	}
	for i, x := range got {
		if !(math.Abs(float64(x)-want[i]) <= 1e-4) {
			return fmt.Errorf("dimension %d is %v, others have %v", i, x, want[i])
		}
	}
	return nil
}
