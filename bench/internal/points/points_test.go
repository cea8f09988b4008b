package points

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"mneme/internal/embed/static"
)

func source(t *testing.T, kind string, opt Options) *Source {
	t.Helper()
	s, err := New(context.Background(), kind, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClustered(t *testing.T) {
	opt := Options{Seed: 1, Dim: 16, Clusters: 3, Noise: 0.1}
	a, b := source(t, Clusters, opt).Take(50), source(t, Clusters, opt).Take(50)
	near := 0
	for i, v := range a {
		sum := 0.0
		for j, x := range v {
			sum += float64(x) * float64(x)
			if x != b[i][j] {
				t.Fatal("the same seed gives other vectors")
			}
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Errorf("vector %d has length² %v", i, sum)
		}
		dot := 0.0
		for j := range v {
			dot += float64(v[j]) * float64(a[0][j])
		}
		if dot > 0.9 {
			near++
		}
	}
	if near < 5 || near > 40 {
		t.Errorf("%d of 50 vectors lie in the cluster of the first, want about a third", near)
	}
	if z := unit(make([]float32, 3)); z[0] != 0 {
		t.Error("a zero vector changes")
	}
}

func TestWriteIsTake(t *testing.T) {
	file := filepath.Join(t.TempDir(), "v.f32")
	opt := Options{Seed: 7, Dim: 5, Clusters: 2, Noise: 1}
	if err := source(t, Clusters, opt).Write(file, 11); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || len(b) != 11*5*4 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	for i, v := range source(t, Clusters, opt).Take(11) {
		for j, x := range v {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*(5*i+j):])); got != x {
				t.Fatalf("float %d of vector %d is %v, want %v", j, i, got, x)
			}
		}
	}
	if source(t, Clusters, opt).WriteQueries(filepath.Join(file, "below"), 1) == nil {
		t.Error("a file below a file is no error")
	}
}

func mean(vectors [][]float32) float64 {
	sum, n := 0.0, 0
	for i, v := range vectors {
		for _, w := range vectors[:i] {
			n++
			for j := range v {
				sum += float64(v[j]) * float64(w[j])
			}
		}
	}
	return sum / float64(n)
}

// TestModelled holds the distribution to what makes it unlike clusters: unrelated
// vectors have something in common.
func TestModelled(t *testing.T) {
	opt := Options{Seed: 1, Dim: 64}
	a, b := source(t, Model, opt).Take(200), source(t, Model, opt).Take(200)
	for i := range a {
		for j := range a[i] {
			if a[i][j] != b[i][j] {
				t.Fatal("the same seed gives other vectors")
			}
		}
	}
	if m := mean(a); m < 0.1 || m > 0.5 {
		t.Errorf("the mean cosine is %v", m)
	}
}

func TestTexts(t *testing.T) {
	opt := Options{Seed: 1, Dim: static.Dimensions, Count: 40, Queries: 10, Texts: []string{"generated"}}
	s := source(t, Texts, opt)
	rows, queries := s.Take(40), s.TakeQueries(10)
	if m := mean(append(rows, queries...)); m < 0 || m > 0.99 {
		t.Errorf("the mean cosine is %v", m)
	}
	for _, change := range []func(*Options){func(o *Options) { o.Dim = 7 }, func(o *Options) { o.Texts = []string{"nothing"} }, func(o *Options) { o.Texts = []string{t.TempDir() + "/none"} }} {
		o := opt
		change(&o)
		if _, err := New(context.Background(), Texts, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if _, err := New(context.Background(), "else", opt); err == nil {
		t.Error("an unknown kind is taken")
	}
	if middle("a b") != "a b" || middle("1 2 3 4 5 6 7 8 9 10 11 12 13 14") != "2 3 4 5 6 7 8 9 10 11 12 13" {
		t.Error("middle")
	}
}
