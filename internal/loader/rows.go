package loader

import (
	"hash/maphash"

	"mneme/internal/importer"
)

// maxRows bounds how many ids of one table are remembered. Those behind it are taken for new ones.
const maxRows = 1 << 20

// rows are what a table says of its ids: what is known by its id alone can be there once. Without
// this one row would revise the other, and the next import the other way round. Each agent has ids of its own.
type rows struct {
	seed maphash.Seed
	said map[uint64]row // by the digest of the id and of whose it is
}

type row struct {
	says  uint64
	where string
}

// first says where the table has another item of this id that says something else; "" where it has none.
func (r *rows) first(item importer.Item) string {
	if item.Provenance == nil { // it has no id
		return ""
	}
	if r.said == nil {
		r.seed, r.said = maphash.MakeSeed(), map[uint64]row{}
	}
	id, says := maphash.String(r.seed, item.Capture.Agent+"\x00"+item.Capture.ID), maphash.String(r.seed, item.Provenance.Says)
	switch was, there := r.said[id]; {
	case there && was.says != says:
		return was.where
	case !there && len(r.said) < maxRows:
		r.said[id] = row{says, item.Where}
	}
	return ""
}
