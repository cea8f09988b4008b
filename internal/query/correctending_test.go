package query

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mneme/internal/embed"
	"mneme/memory"
)

// tradeWords are ordinary words of the trade whose stem is shorter.
var tradeWords = strings.Fields(`
deployment configuration authentication availability replication orchestrator authorization scheduling provisioning monitoring
observability compression encryption validation synchronization partitioning migration dependency dependencies repository
notification subscription transaction isolation consistency durability reliability scalability performance maintenance
compliance persistence inference reference management environment requirement assignment measurement readiness
robustness correctness idempotency concurrency latencies vulnerability compatibility accessibility responsibility visibility
operator allocator accumulator indicator container scheduler controller developer subscriber publisher
serialized initialized normalized organization virtualization optimization tokenizer analyzer versioned throttled
logging debugging retries policies queries batches immutable executable ephemeral incremental
conditional operational statistically periodically automatically asynchronous heterogeneous recursive exhaustive sensitive
`)

// slip is a word with one edit.
type slip struct {
	word, written string
	kind          string
	ending        bool // the edit is behind the stem
}

// slips makes one edit of each kind at each place of a word but the first letter.
func slips(word string, rng *rand.Rand) (out []slip) {
	stem := len(termOf(word))
	for at := 1; at <= len(word); at++ {
		letter := string(lowerLetters[rng.IntN(len(lowerLetters))])
		add := func(kind, written string, ending bool) {
			if written != word && termOf(written) != termOf(word) && !embed.Ordinary(termOf(written)) {
				out = append(out, slip{word, written, kind, ending})
			}
		}
		add("insertion", word[:at]+letter+word[at:], at >= stem)
		if at < len(word) {
			add("deletion", word[:at]+word[at+1:], at >= stem)
			add("substitution", word[:at]+letter+word[at+1:], at >= stem)
		}
		if at+1 < len(word) {
			add("swap", word[:at]+word[at+1:at+2]+word[at:at+1]+word[at+2:], at+1 >= stem)
		}
	}
	return out
}

// TestSlipsInEndings: a word with one edit is found wherever the edit is, in its ending as in the middle.
func TestSlipsInEndings(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for i, word := range tradeWords {
		w.One("team", "ann", fmt.Sprintf("note %d is about the %s of the harbour", i, word))
	}
	rng := rand.New(rand.NewPCG(11, 11))
	type count struct{ found, all int }
	type where struct {
		kind   string
		ending bool
	}
	counts, missed := map[where]*count{}, map[where]string{}
	for _, word := range tradeWords {
		for _, s := range slips(word, rng) {
			at := where{s.kind, s.ending}
			if counts[at] == nil {
				counts[at] = new(count)
			}
			counts[at].all++
			res := w.search("team", "", memory.SearchRequest{Query: s.written})
			if slices.ContainsFunc(texts(res.Results), func(text string) bool { return strings.Contains(text, " "+word+" ") }) {
				counts[at].found++
			} else {
				missed[at] += " " + s.written
			}
		}
	}
	share := func(c count) float64 { return float64(c.found) / float64(c.all) }
	var sum [2]count
	for at, c := range counts {
		t.Logf("%s, ending %v: %d of %d = %.3f, not found:%s", at.kind, at.ending, c.found, c.all, share(*c), missed[at])
		least, i := 0.9, 0
		if at.ending {
			least, i = 0.98, 1
		}
		sum[i].found, sum[i].all = sum[i].found+c.found, sum[i].all+c.all
		if share(*c) < least || c.all < 3*len(tradeWords) {
			t.Errorf("%s, ending %v: %d of %d found, not a share of %v", at.kind, at.ending, c.found, c.all, least)
		}
	}
	if share(sum[1]) < share(sum[0]) || len(tradeWords) < 80 {
		t.Errorf("of %d words %.3f are found with a slip in the ending, %.3f in the middle", len(tradeWords), share(sum[1]), share(sum[0]))
	}
}

// TestSlipsInEndingsAreToldAsEdits: what a slip was read as is named as the memory writes it, and is one
// edit; what goes on with an ending is a beginning; a word that memories have is itself.
func TestSlipsInEndingsAreToldAsEdits(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for _, s := range []string{"deployments wait", "the configuration of the gateway", "availability first", "logging is on", "he authenticates", "they digged"} {
		w.One("team", "ann", s)
	}
	for query, want := range map[string]string{
		"deploymnet":     "deploymnet>deployments(edit 1) ",
		"deplomyent":     "deplomyent>deployments(edit 1) ", // across the edge of the ending
		"deploymentx":    "deploymentx>deployments(edit 1) ",
		"configuratoin":  "configuratoin>configuration(edit 1) ",
		"availabilty":    "availabilty>availability(edit 1) ",
		"availabilit":    "availabilit>availability(beginning 1) ",
		"authenticatoin": "authenticatoin>authenticates(edit 1) ",
		"authntication":  "authntication>authenticates(edit 1) ",
		"configuratio":   "configuratio>configuration(beginning 1) ",
		"loggign":        "loggign>logging(edit 1) ",
		"digegd":         "", // three letters without a short ending say little
		"deployment":     "", // a memory has it
	} {
		res := w.search("team", "", memory.SearchRequest{Query: query})
		if got := readAs(res); got != want {
			t.Errorf("%q is read as %q, want %q", query, got, want)
		}
		for _, c := range res.Corrections {
			if c.Kind == string(kindEdit) && (c.Distance != 1 || c.Weight != weightEdit) {
				t.Errorf("%q: %+v", query, c)
			}
		}
		off := w.search("team", "", memory.SearchRequest{Query: query, Parts: map[memory.Part]bool{memory.PartVocabulary: false}})
		if len(off.Corrections) > 0 {
			t.Errorf("%q: corrected although switched off", query)
		}
	}
}

// TestMendedEndingsEqualADumbScan compares the words that an edit makes of a word by its ending with
// all that an edit makes of it.
func TestMendedEndingsEqualADumbScan(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		word := tradeWords[rng.IntN(len(tradeWords))]
		for range 1 + rng.IntN(2) {
			s := slips(word, rng)
			word = s[rng.IntN(len(s))].written
		}
		if rng.IntN(4) == 0 {
			word = word[rng.IntN(len(word)):]
		}
		got := map[string]bool{}
		eachMended(word, func(mended string) { got[mended] = true })
		want := map[string]bool{}
		for mended := range oneEdit(word) {
			for _, ending := range wordEndings {
				at := len(mended) - len(ending)
				if at < leastHead || mended[at:] != ending {
					continue
				}
				across := len(word) == len(mended) && mended[:at-1] == word[:at-1] && mended[at-1] == word[at] && mended[at] == word[at-1] && mended[at+1:] == word[at+1:]
				if strings.HasPrefix(word, mended[:at]) || across && at > leastHead {
					want[mended] = true
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: %q: %q, want %q", seed, word, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

// oneEdit are all words of lower letters that one edit makes of another one.
func oneEdit(word string) map[string]bool {
	out := map[string]bool{}
	for at := 0; at <= len(word); at++ {
		for _, r := range lowerLetters {
			out[word[:at]+string(r)+word[at:]] = true
			if at < len(word) {
				out[word[:at]+string(r)+word[at+1:]] = true
			}
		}
		if at < len(word) {
			out[word[:at]+word[at+1:]] = true
		}
		if at+1 < len(word) {
			out[word[:at]+word[at+1:at+2]+word[at:at+1]+word[at+2:]] = true
		}
	}
	delete(out, word)
	return out
}

// The examples of docs/search.md find what it says, and are read as it says.
func TestExamplesOfCorrections(t *testing.T) {
	memories, rows := examples(t, "(a test runs these examples, too)")
	w := newWorld(t)
	w.Namespace("team", nil)
	numbers := map[string]string{}
	for i, text := range memories {
		numbers[w.One("team", "ann", text)] = fmt.Sprint(i + 1)
	}
	for _, row := range rows {
		res := w.search("team", "", memory.SearchRequest{Query: row[0], Mode: memory.ModeText})
		finds, reads := "nothing", ""
		for i, h := range res.Results {
			if i == 0 {
				finds = ""
			}
			finds += numbers[h.ID]
		}
		for _, c := range res.Corrections {
			reads += fmt.Sprintf("`%s` as `%s`, %s", c.Word, c.ReadAs, c.Kind)
		}
		if finds != row[1] {
			t.Errorf("%s finds %s, and not %s", row[0], finds, row[1])
		}
		if reads != row[2] {
			t.Errorf("%s is read: %s, and not: %s", row[0], reads, row[2])
		}
	}
	if len(numbers) != 5 || len(rows) != 8 {
		t.Errorf("%d memories and %d examples", len(numbers), len(rows))
	}
}
