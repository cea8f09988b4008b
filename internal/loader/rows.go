package loader

import (
	"hash/maphash"

	"mneme/internal/importer"
)

// maxRows bounds how many ids of one file are remembered. Those behind it are taken for new ones.
const maxRows = 1 << 20

// rows are what a table says of its ids, or a graph of its entities: what is known by its id alone can be there once. Without
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
	return r.other(item.Capture.Agent+"\x00"+item.Capture.ID, item.Provenance.Says, item.Where)
}

// other notes what is said of an id, and says where something else was said of it before; "" where nothing was.
func (r *rows) other(id, says, where string) string {
	if r.said == nil {
		r.seed, r.said = maphash.MakeSeed(), map[uint64]row{}
	}
	known, now := maphash.String(r.seed, id), maphash.String(r.seed, says)
	switch was, there := r.said[known]; {
	case there && was.says != now:
		return was.where
	case !there && len(r.said) < maxRows:
		r.said[known] = row{now, where}
	}
	return ""
}
