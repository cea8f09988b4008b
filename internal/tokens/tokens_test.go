package tokens

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

// TestCount compares with numbers that OpenAI's tokenizer gives for cl100k_base.
func TestCount(t *testing.T) {
	for text, want := range map[string]int{
		"":                             0,
		"hello world":                  2,
		"tiktoken is great!":           6,
		"antidisestablishmentarianism": 6,
		"2 + 2 = 4":                    7,
		"お誕生日おめでとう":                    9,
	} {
		if n := Count(text); n != want {
			t.Errorf("%q has %d tokens, want %d", text, n, want)
		}
	}
}

// TestBounds: what Budget does not count relies on how long tokens are.
func TestBounds(t *testing.T) {
	longest := 0
	for _, text := range []string{strings.Repeat(" ", 4096), strings.Repeat("=", 4096), strings.Repeat("-", 4096), strings.Repeat("*", 4096), strings.Repeat("\n", 4096)} {
		ids, pieces, err := codec.NewCl100kBase().Encode(text)
		if err != nil || len(ids) > len(text) {
			t.Fatal(len(ids), err)
		}
		for _, p := range pieces {
			longest = max(longest, len(p))
		}
	}
	if longest > maxTokenBytes {
		t.Errorf("a token has %d bytes", longest)
	}
}

func TestBudgetIsNotExceeded(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	words := []string{"deploys", " happen", " on", " Tuesdays", `{"id":"`, "部署", "\n", "    ", "01JC2Y3K5V", "aaaaaaaaaaaaaaaa", "e\u0301", "🚀"}
	for range 200 {
		size := random.IntN(400)
		b, left := NewBudget(size), size
		for range 20 {
			var sb strings.Builder
			for range random.IntN(40) {
				sb.WriteString(words[random.IntN(len(words))])
			}
			n := Count(sb.String())
			if took := b.Take(sb.String()); took != (n <= left) {
				t.Fatalf("of %d tokens, %d are left: a piece of %d was taken: %v", size, left, n, took)
			} else if took {
				left -= n
			}
		}
	}
}

func TestBudgetOfNothing(t *testing.T) {
	b := NewBudget(0)
	if b.Take("x") || !b.Take("") || NewBudget(1).Take(strings.Repeat("x", 1<<20)) || !NewBudget(10_000_000).Take(strings.Repeat("x", 1<<20)) {
		t.Error("bounds")
	}
}

func TestCountConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if n := Count("hello world"); n != 2 {
					t.Errorf("%d tokens", n)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCount(b *testing.B) {
	text := strings.Repeat(`{"record_id":"01JC2Y3K5V8Q0T4W6X7Z9A1B2C","text":"deploys happen on Tuesdays, after the stand-up"},`, 100)
	Count(text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Count(text)
	}
}
