package backup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mneme/memory"
)

// An era is what a place holds of one cluster. A cluster that was made of the data of another
// one, its former one, has another id and goes on in the same place with an era of its own.
// That it was is said by the cluster itself, in manifests that only who has its keys can
// write, and the former one's were written with the same keys.

// lineage is how the clusters of a place go on from each other.
type lineage struct {
	eras   []string            // oldest first; the last one is the present
	former map[string][]string // by cluster: all that it goes on from, ascending
}

// arrange finds the eras, and sorts the backups by them, oldest first. Backups of clusters that
// are none of them come first: they are foreign.
func (s *Set) arrange() {
	s.lineage = lineageOf(s.Backups)
	slices.SortStableFunc(s.Backups, func(a, b Manifest) int {
		return cmp.Or(cmp.Compare(s.era(a.Cluster), s.era(b.Cluster)), a.MadeAt.Compare(b.MadeAt), strings.Compare(a.ID, b.ID))
	})
}

// lineageOf finds the cluster that no other one goes on from. Of several, which are foreign to
// each other, it is the one with most backups, and of two the one that was here first.
func lineageOf(backups []Manifest) (l lineage) {
	l.former = formerOf(backups)
	count, first := map[string]int{}, map[string]*Manifest{}
	for i := range backups {
		m := &backups[i]
		if count[m.Cluster]++; first[m.Cluster] == nil || m.MadeAt.Before(first[m.Cluster].MadeAt) {
			first[m.Cluster] = m
		}
	}
	older := func(a, b string) int { return first[a].MadeAt.Compare(first[b].MadeAt) }
	there := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(older(a, b), strings.Compare(a, b)) })
	most := 0
	for _, c := range there {
		if slices.ContainsFunc(there, func(o string) bool { return l.goesOnFrom(o, c) && !l.goesOnFrom(c, o) }) {
			continue
		}
		line := slices.DeleteFunc(slices.Clone(there), func(o string) bool { return o == c || !l.goesOnFrom(c, o) })
		slices.SortStableFunc(line, func(a, b string) int { return cmp.Compare(len(l.former[a]), len(l.former[b])) })
		n := count[c]
		for _, o := range line {
			n += count[o]
		}
		if n > most {
			most, l.eras = n, append(line, c)
		}
	}
	return l
}

// formerOf gives, for each cluster, those that it says it goes on from, and those that they do.
func formerOf(backups []Manifest) map[string][]string {
	all := map[string][]string{}
	for _, m := range backups {
		all[m.Cluster] = union(all[m.Cluster], m.Former)
	}
	for grew := true; grew; {
		grew = false
		for c, of := range all {
			more := of
			for _, f := range of {
				more = union(more, all[f])
			}
			if len(more) > len(of) {
				all[c], grew = more, true
			}
		}
	}
	return all
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func (l *lineage) goesOnFrom(cluster, former string) bool {
	return slices.Contains(l.former[cluster], former)
}

// era counts from 1; 0 is a foreign cluster.
func (l *lineage) era(cluster string) int { return slices.Index(l.eras, cluster) + 1 }

// ancestors are all clusters that one goes on from, of which it knows some itself.
func (l *lineage) ancestors(cluster string, known []string) []string {
	all := union(l.former[cluster], known)
	for _, c := range slices.Clone(all) {
		all = union(all, l.former[c])
	}
	return slices.DeleteFunc(all, func(c string) bool { return c == cluster })
}

// foreign is the first backup of a cluster that is none of the eras; nil if there is none.
func (s *Set) foreign() *Manifest {
	if len(s.Backups) > 0 && s.era(s.Backups[0].Cluster) == 0 {
		return &s.Backups[0]
	}
	return nil
}

// present is the cluster of the present era.
func (s *Set) present() string { return s.eras[len(s.eras)-1] }

func (s *Set) strange(m *Manifest) string {
	return fmt.Sprintf("it is of the cluster %s, and the place of %s, which does not go on from that one", m.Cluster, s.present())
}

// Eras says what the place holds of each, oldest first.
func (s *Set) Eras() []memory.BackupEra {
	out := make([]memory.BackupEra, len(s.eras))
	for _, m := range s.Backups { // the newest of each comes last
		if n := s.era(m.Cluster); n > 0 {
			out[n-1] = memory.BackupEra{Cluster: m.Cluster, Backups: out[n-1].Backups + 1, Newest: m.ID, MadeAt: m.MadeAt}
		}
	}
	return out
}
