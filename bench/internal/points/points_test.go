package cluster

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestClustered(t *testing.T) {
	a, b := New(1, 16, 3, 0.1).Take(50), New(1, 16, 3, 0.1).Take(50)
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
	if err := New(7, 5, 2, 1).Write(file, 11); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || len(b) != 11*5*4 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	for i, v := range New(7, 5, 2, 1).Take(11) {
		for j, x := range v {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*(5*i+j):])); got != x {
				t.Fatalf("float %d of vector %d is %v, want %v", j, i, got, x)
			}
		}
	}
	if New(7, 5, 2, 1).Write(filepath.Join(file, "below"), 1) == nil {
		t.Error("a file below a file is no error")
	}
}
