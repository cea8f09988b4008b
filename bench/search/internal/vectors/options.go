package vectors

import (
	"fmt"
	"slices"
	"time"
)

// K is the number of neighbours asked for.
const K = 10

// Parameters of every graph.
const (
	m   = 16
	efc = 200
)

// wanted is the recall@10 at which indexes are compared.
const wanted = 0.98

// Options of Run.
type Options struct {
	Dir         string        // an empty folder for files
	Own         []string      // command that serves one of our engines; its name and parameters follow
	Peers       string        // the C++ program, "" if there is none
	Missing     error         // why there is none
	Threads     int           // all
	Queries     int           // different ones
	Runs        int           // whose median counts
	Least       time.Duration // of one measurement
	Indexes     []string      // names of those to measure; empty: all
	Seed        uint64
	Of          string   // the kind of vectors, one of points.Kinds
	Texts       []string // where texts come from
	PerCluster  int      // vectors that share a centre
	Noise       float64  // length of the noise around a centre of length 1
	Small       int      // up to this size the exact scan and coder/hnsw are measured too
	ReplaceUpto int      // the largest size at which half of the vectors is replaced
	Debian      bool     // FAISS with the library's own kernels too
	Progress    func(format string, args ...any)
}

// index is a row of the tables.
type index struct {
	name    string // for people
	command []string
	small   bool // measured at small sizes only
	fixed   bool // takes no ef
	peer    bool // hnswlib or FAISS
}

func (opt Options) indexes(n, dim int) []index {
	own := func(engine string) []string { return append(append([]string{}, opt.Own...), args(engine, dim)...) }
	all := []index{
		{name: "mneme", command: own("mneme")},
		{name: "exact scan", command: own("exact"), small: true, fixed: true},
		{name: "coder/hnsw", command: own("coder"), small: true, fixed: true},
	}
	if opt.Peers != "" {
		peer := func(engine string) []string { return append([]string{opt.Peers}, args(engine, dim)...) }
		all = append(all, index{name: "hnswlib", command: peer("hnswlib"), peer: true},
			index{name: "FAISS HNSWFlat", command: peer("faiss"), peer: true},
			index{name: "FAISS HNSWSQ8", command: peer("faiss-sq8"), peer: true},
			index{name: "FAISS IVF-PQ fast scan, re-ranked", command: peer("faiss-ivfpqfs"), peer: true})
		if opt.Debian {
			all = append(all, index{name: "FAISS HNSWFlat, as built by Debian", command: peer("faiss-debian"), small: true},
				index{name: "FAISS HNSWSQ8, as built by Debian", command: peer("faiss-sq8-debian"), small: true})
		}
	}
	var out []index
	for _, x := range all {
		named := len(opt.Indexes) == 0 || slices.Contains(opt.Indexes, x.name)
		if named && (!x.small || n <= opt.Small) {
			out = append(out, x)
		}
	}
	return out
}

func args(engine string, dim int) []string {
	return []string{engine, fmt.Sprint(dim), fmt.Sprint(m), fmt.Sprint(efc)}
}
