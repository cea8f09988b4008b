package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mneme/bench/internal/points"
)

const (
	peerRows, peerDim, peerQueries = 500, 20, 30
	k                              = 10
)

// checkPeer drives one index of the C++ program through every command.
func checkPeer(t *testing.T, bin, dir, engine string) {
	t.Run(engine, func(t *testing.T) {
		at := func(name string) string { return filepath.Join(dir, name) }
		source, err := points.New(t.Context(), points.Clusters, points.Options{Seed: 5, Dim: peerDim, Clusters: 3, Noise: 1})
		if err != nil {
			t.Fatal(err)
		}
		for name, n := range map[string]int{"base": peerRows, "fresh": 4} {
			if err := source.Write(at(name), n); err != nil {
				t.Fatal(err)
			}
		}
		queries := source.Take(peerQueries)
		write(t, at("queries"), queries)
		write(t, at("rows"), []uint32{0, 7, 8, 499})
		allowed := make([]byte, peerRows)
		for i := 0; i < peerRows; i += 4 {
			allowed[i] = 1
		}
		write(t, at("mask"), allowed)
		search := func(out string) string {
			return fmt.Sprintf("search %s %d %d 300 2 0 %s", at("queries"), peerQueries, k, at(out))
		}
		answers := talk(t, bin, engine, []string{
			fmt.Sprintf("truth %s %d %s %d %d 2 %s -", at("base"), peerRows, at("queries"), peerQueries, k, at("truth")),
			fmt.Sprintf("truth %s %d %s %d %d 1 %s %s", at("base"), peerRows, at("queries"), peerQueries, k, at("some"), at("mask")),
			fmt.Sprintf("build %s %d 2", at("base"), peerRows), search("found"),
			"filter " + at("mask"), search("filtered"), "filter -", "save " + at("saved"), "load " + at("saved"), search("loaded"),
			"build nowhere 5 1", "nothing", fmt.Sprintf("replace %s %s 4 1", at("fresh"), at("rows")),
		})
		for i, a := range answers {
			switch refused := strings.Contains(a, "error"); {
			case i == 4 && engine == "faiss-ivfpqfs":
				if !strings.Contains(a, `"unsupported":true`) {
					t.Errorf("a filter answered %s", a)
				}
			case i < 10 && refused, (i == 10 || i == 11) && !refused:
				t.Errorf("command %d answered %s", i, a)
			case i == 12 && strings.Contains(a, `"unsupported":true`) != strings.HasPrefix(engine, "faiss"):
				t.Errorf("replace answered %s", a)
			}
		}
		truth := rows(t, at("truth"))
		base := floats(t, at("base"))
		for q := range 3 {
			if want := nearestRow(base, queries[q]); truth[q*k] != want {
				t.Errorf("query %d: the scan finds row %d first, want %d", q, truth[q*k], want)
			}
		}
		if share := overlap(rows(t, at("found")), truth); share < 0.9 {
			t.Errorf("recall %.3f", share)
		}
		if share := overlap(rows(t, at("loaded")), rows(t, at("found"))); share < 0.999 {
			t.Errorf("after loading it finds %.3f of what it found", share)
		}
		if engine == "faiss-ivfpqfs" {
			return
		}
		for _, row := range append(rows(t, at("filtered")), rows(t, at("some"))...) {
			if row >= 0 && row%4 != 0 {
				t.Fatalf("row %d is not allowed", row)
			}
		}
		if share := overlap(rows(t, at("filtered")), rows(t, at("some"))); share < 0.7 {
			t.Errorf("filtered recall %.3f", share)
		}
	})
}

func talk(t *testing.T, bin, engine string, commands []string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, engine, fmt.Sprint(peerDim), "16", "100")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", engine, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(commands) {
		t.Fatalf("%d answers to %d commands: %s", len(lines), len(commands), out)
	}
	return lines
}

func write(t *testing.T, file string, what any) {
	t.Helper()
	var b bytes.Buffer
	if vectors, ok := what.([][]float32); ok {
		for _, v := range vectors {
			if err := binary.Write(&b, binary.NativeEndian, v); err != nil {
				t.Fatal(err)
			}
		}
	} else if err := binary.Write(&b, binary.NativeEndian, what); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read[T any](t *testing.T, file string) []T {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]T, len(b)/4)
	if err := binary.Read(bytes.NewReader(b), binary.NativeEndian, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func rows(t *testing.T, file string) []int32     { return read[int32](t, file) }
func floats(t *testing.T, file string) []float32 { return read[float32](t, file) }

func nearestRow(base []float32, q []float32) (best int32) {
	most := -2.0
	for row := range peerRows {
		dot := 0.0
		for j, x := range q {
			dot += float64(x) * float64(base[row*peerDim+j])
		}
		if dot > most {
			most, best = dot, int32(row)
		}
	}
	return best
}

// overlap is the share of want that got holds too, query by query.
func overlap(got, want []int32) float64 {
	found, all := 0, 0
	for q := 0; q < len(want); q += k {
		has := map[int32]bool{}
		for _, row := range got[q : q+k] {
			has[row] = true
		}
		for _, row := range want[q : q+k] {
			if row >= 0 {
				all++
				if has[row] {
					found++
				}
			}
		}
	}
	return float64(found) / float64(all)
}
