package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mneme/internal/settings"
	"mneme/memory"
)

// TestBeginnings: a word with a star finds the memories with a word that begins so.
func TestBeginnings(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for _, s := range []string{
		"Kubernetes upgrades happen on Tuesdays",
		"kubectl apply, kubectl get, and kubelet logs",
		"deployments need a review",
		"organizations are charged by seat",
		"user_profile is cached",
		"the API speaks to v1.29.4 of it, 1.30.1 is next",
		"the host is 10.0.3.7",
		"commit 3f2a9c1d7b broke the build",
		"Развёртывание идёт ночью",
		"перевёрнутый указатель",
		"数据库已满",
		"Müllabfuhr am Montag",
		"theories are grey",
		"internal/store/memtable.go:42 panics",
	} {
		w.One("team", "ann", s)
	}
	for _, c := range []struct{ query, read, found string }{
		{"kube*", "kube*>kubectl(begins 1) kube*>kubelet(begins 1) kube*>kubernetes(begins 1) ", "kubectl apply, kubectl get, and kubelet logs|Kubernetes upgrades happen on Tuesdays"},
		{"KUBE*", "KUBE*>kubectl(begins 1) KUBE*>kubelet(begins 1) KUBE*>kubernetes(begins 1) ", "kubectl apply, kubectl get, and kubelet logs|Kubernetes upgrades happen on Tuesdays"},
		{"kubernetes*", "", "Kubernetes upgrades happen on Tuesdays"},
		{"deploym*", "deploym*>deployments(begins 1) ", "deployments need a review"},
		{"organiza*", "organiza*>organizations(begins 1) ", "organizations are charged by seat"},
		{"user_pr*", "user_pr*>user_profile(begins 1) ", "user_profile is cached"},
		{"v1.2*", "v1.2*>v1.29.4(begins 1) ", "the API speaks to v1.29.4 of it, 1.30.1 is next"},
		{"1.3*", "1.3*>1.30(begins 1) 1.3*>1.30.1(begins 1) ", "the API speaks to v1.29.4 of it, 1.30.1 is next"},
		{"10.0.*", "10.0.*>10.0.3.7(begins 1) ", "the host is 10.0.3.7"},
		{"3f*", "3f*>3f2a9c1d7b(begins 1) ", "commit 3f2a9c1d7b broke the build"},
		{"разв*", "разв*>развёртывание(begins 1) ", "Развёртывание идёт ночью"},
		{"переве*", "переве*>перевёрнутый(begins 1) ", "перевёрнутый указатель"},
		{"数*", "数*>数据(begins 1) ", "数据库已满"},
		{"müll*", "müll*>müllabfuhr(begins 1) ", "Müllabfuhr am Montag"},
		{"muell*", "muell*>müllabfuhr(begins 1) ", "Müllabfuhr am Montag"},
		{"the*", "the*>theories(begins 1) ", "theories are grey"},
		{"internal/sto*", "internal/sto*>internal/store/memtable.go(begins 1) internal/sto*>internal/store/memtable.go:42(begins 1) sto>store(beginning 1) sto>store/memtable.go(beginning 1) ", "internal/store/memtable.go:42 panics"},
		{"kubctl*", "kubctl*>kubectl(edit 1) ", ""},
		{`-"kube*" kubelet`, "", "kubectl apply, kubectl get, and kubelet logs"},
		{"*kube", "kube>kubernetes(alias 1) kube>kubectl(beginning 1) kube>kubelet(beginning 1) ", ""},
	} {
		res := w.search("team", "", memory.SearchRequest{Query: c.query, Mode: memory.ModeText, Explain: true})
		if got := readAs(res); c.read != "*" && got != c.read {
			t.Errorf("%s: read as %s, want %s", c.query, got, c.read)
		}
		if got := strings.Join(texts(res.Results), "|"); c.found != "" && got != c.found {
			t.Errorf("%s: found %s, want %s", c.query, got, c.found)
		}
		for _, h := range res.Results {
			if err := checkExplain(&h); err != nil {
				t.Error(err)
			}
		}
	}
	w.Change("team", map[string]string{settings.PartSetting(memory.PartVocabulary): settings.Off})
	for query, want := range map[string]int{"kube*": 2, "kubrn*": 0, "deplo": 0} {
		if res := w.search("team", "", memory.SearchRequest{Query: query, Mode: memory.ModeText}); len(res.Results) != want {
			t.Errorf("%s without a vocabulary: %v", query, texts(res.Results))
		}
	}
}

// consonants has no ending that a stemmer takes off.
func consonants(n int) string {
	const of = "bdfgjklmpt"
	return string(of[n/10]) + string(of[n%10]) + "x"
}

// TestBeginningOfMany: of the terms that begin so, the most frequent ones count, and the
// answer says that there are more; of very many none does.
func TestBeginningOfMany(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	for i := range 50 {
		w.One("team", "ann", "zone"+consonants(i))
	}
	for range 3 {
		w.One("team", "ann", "zonekpx")
	}
	res := w.search("team", "", memory.SearchRequest{Query: "zone*", Limit: ptr(200)})
	if got := readAs(res); got != "zone*>(many 0) zone*>zonekpx(begins 3) zone*>zonebbx(begins 1) zone*>zonebdx(begins 1) " {
		t.Errorf("read as %s", got)
	}
	if n := len(res.Results); n != 31+3 || !slices.Contains(texts(res.Results), "zonekpx") {
		t.Errorf("%d results: %v", n, texts(res.Results))
	}
	var b strings.Builder
	for i := range maxBegun {
		b.WriteString(" zonq" + string("bdfgjklmptr"[i/100]) + consonants(i%100))
	}
	w.One("team", "ann", b.String())
	if got := readAs(w.search("team", "", memory.SearchRequest{Query: "zon* river"})); got != "zon*>(many 0) " {
		t.Errorf("of too many: read as %s", got)
	}
}

// TestBeginningsBeforeTheVocabularyIsThere: they come from the rows, the same ones.
func TestBeginningsBeforeTheVocabularyIsThere(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	for i := range 300 {
		w.One("team", "ann", fmt.Sprintf("grey%d gray%d greenish", i, i%7))
	}
	s := &search{buffers: w.svc.pool.Get().(*buffers)}
	s.begin([]*Reader{w.reader("team", "")})
	p := &s.places[0]
	v, err := p.in.view.Vocabulary(p.Partition)
	w.OK(err)
	for _, begins := range []string{"gray", "gre", "grey1", "gr", "xylo", "greenish"} {
		var got [2]*queried
		for i, c := range []*corrector{{s: s, unread: []*place{p}}, {s: s}} {
			if i > 0 {
				c.vocabularies = append(c.vocabularies, v)
			}
			got[i] = &queried{begins: begins}
			w.OK(c.begun(got[i]))
		}
		if a, b := fmt.Sprintf("%+v", *got[0]), fmt.Sprintf("%+v", *got[1]); a != b {
			t.Errorf("%s* is %s by the rows, and %s by the vocabulary", begins, a, b)
		}
	}
}
