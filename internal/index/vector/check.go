package vector

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// checkGraph proves of a graph that was read what searches and insertions rely
// on: links lead to other nodes that have the layer, the entry point is on the
// top layer, the tree is whole. It fills g.children and g.towers.
func checkGraph(g *hnsw, ids *view[uint32], count, entry uint32) error {
	levels, err := g.placeTowers(ids, count)
	if err != nil {
		return err
	}
	view := g.view()
	g.children = make([]uint8, count)
	for slot := uint32(1); slot < count; slot++ {
		parent := *view.ground.at(slot)
		if parent&treeLink == 0 || parent&^treeLink >= slot {
			return fmt.Errorf("node %d has no parent", slot)
		}
		parent &^= treeLink
		if g.children[parent]++; int(g.children[parent]) > g.maxChildren() {
			return fmt.Errorf("node %d has too many children", parent)
		}
	}
	c := graphChecker{graph: view, levels: levels, children: g.children, top: levels[entry]}
	return inParts(count, func(from, to uint32) error {
		for slot := from; slot < to; slot++ {
			if err := c.node(slot); err != nil {
				return err
			}
		}
		return nil
	})
}

// placeTowers derives from IDs the levels of nodes and the places of their rows
// above the ground.
func (g *hnsw) placeTowers(ids *view[uint32], count uint32) ([]uint8, error) {
	levels := make([]uint8, count)
	g.towers.grow(int(count), 0)
	towers, rows := g.towers.view(), uint32(0)
	for slot := range count {
		id := *ids.at(slot)
		if slot > 0 && id <= *ids.at(slot - 1) {
			return nil, fmt.Errorf("id %d after %d", id, *ids.at(slot - 1))
		}
		level := levelOf(id, g.params.M)
		levels[slot] = uint8(level)
		*towers.at(slot) = rows
		rows += uint32(level)
	}
	if rows != g.upperRows {
		return nil, fmt.Errorf("%d rows above the ground, %d are needed", g.upperRows, rows)
	}
	return levels, nil
}

type graphChecker struct {
	graph    graphView
	levels   []uint8
	children []uint8
	top      uint8
}

// node checks the rows of one node.
func (c *graphChecker) node(slot uint32) error {
	level := c.levels[slot]
	if level > c.top {
		return fmt.Errorf("entry point is below node %d", slot)
	}
	for layer := range int(level) + 1 {
		row := c.graph.links(slot, layer)
		links := row[:linkCount(row)]
		for _, link := range row[len(links):] {
			if link != none {
				return fmt.Errorf("node %d has a link after its last", slot)
			}
		}
		for _, link := range links {
			to := link
			if layer == 0 {
				to &^= treeLink
			}
			if to >= uint32(len(c.levels)) || to == slot || int(c.levels[to]) < layer {
				return fmt.Errorf("node %d links to %d on layer %d", slot, to, layer)
			}
		}
	}
	return c.tree(slot)
}

// tree checks that the links to its children are in the row of a node, each
// once, and no others are marked so.
func (c *graphChecker) tree(slot uint32) error {
	row := c.graph.ground.row(slot)
	if slot > 0 {
		row = row[1:] // the parent
	}
	found := uint8(0)
	for i, link := range row {
		if link == none {
			break
		}
		if link&treeLink == 0 {
			continue
		}
		child := link &^ treeLink
		if child < slot || *c.graph.ground.at(child) != slot|treeLink || slices.Contains(row[:i], link) {
			return fmt.Errorf("node %d is not the parent of %d", slot, child)
		}
		found++
	}
	if found != c.children[slot] {
		return fmt.Errorf("node %d has %d children and links to %d", slot, c.children[slot], found)
	}
	return nil
}

// inParts calls f for parts of 0..n-1 from as many goroutines as there are
// processors and returns one of the errors.
func inParts(n uint32, f func(from, to uint32) error) error {
	parts := uint64(runtime.GOMAXPROCS(0))
	errs := make([]error, parts)
	var wg sync.WaitGroup
	for i := range parts {
		from, to := uint32(uint64(n)*i/parts), uint32(uint64(n)*(i+1)/parts)
		wg.Go(func() { errs[i] = f(from, to) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
