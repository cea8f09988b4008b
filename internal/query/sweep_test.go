package query
import ("testing";"fmt";"slices";"io";"errors";"mneme/internal/importer";"mneme/memory")
func TestSweep(t *testing.T) {
	src, _ := importer.Open("locomo", openData(t, "locomo/dev.json"), importer.Options{})
	w := newWorld(t)
	batches := map[string][]memory.Capture{}
	for { it, err := src.Next(); if errors.Is(err, io.EOF) {break}; if err!=nil {t.Fatal(err)}; batches[it.Namespace]=append(batches[it.Namespace],it.Capture)}
	var nss []string
	for ns, all := range batches { nss=append(nss,ns); w.namespace(ns, map[string]string{"embedder.space": builtinSpace}); for b := range slices.Chunk(all,200) { w.capture(ns,b...) } }
	p := func(n string, a asked) { fmt.Printf("%s R@10 %.4f MRR %.4f n=%v\n", n, a.found/a.questions, a.mrr/a.questions, a.questions) }
	p("text", w.ask(t,nss,memory.ModeText)); p("vector", w.ask(t,nss,memory.ModeVector))
	for _, vw := range []string{"0.15","0.25","0.35","0.5"} {
		for _, ns := range nss { w.change(ns, map[string]string{"search.vector_weight": vw}) }
		for _, s := range []float64{0.1,0.25,0.5,1,2,5} { scaleShare = s; p(fmt.Sprintf("w=%s s=%v", vw, s), w.ask(t,nss,memory.ModeHybrid)) }
	}
	for _, ns := range nss { w.change(ns, map[string]string{"search.vector_weight": "0.5","search.fusion":"rrf"}) }
	p("rrf .5", w.ask(t,nss,memory.ModeHybrid))
	for _, ns := range nss { w.change(ns, map[string]string{"search.vector_weight": "0.25","search.fusion":"rrf"}) }
	p("rrf .25", w.ask(t,nss,memory.ModeHybrid))
}
