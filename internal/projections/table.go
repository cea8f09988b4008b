package projections

import "maps"

// table is a map that never changes. with gives another one, which shares all
// buckets but those that it touches, so a view keeps the tables of its position
// at no cost, and a commit pays for what it touched.
type table[K comparable, V any] struct {
	bucket  func(K) uint8
	buckets *[256]map[K]*V
}

func newTable[K comparable, V any](bucket func(K) uint8) table[K, V] {
	return table[K, V]{bucket, &[256]map[K]*V{}}
}

// get returns a value, which must not be changed, or nil.
func (t table[K, V]) get(k K) *V { return t.buckets[t.bucket(k)][k] }

// each visits all, in no order.
func (t table[K, V]) each(visit func(k K, v *V)) {
	for _, bucket := range t.buckets {
		for k, v := range bucket {
			visit(k, v)
		}
	}
}

// with returns a table with other values for some keys; nil takes one out.
func (t table[K, V]) with(changed map[K]*V) table[K, V] {
	if len(changed) == 0 {
		return t
	}
	buckets, own := *t.buckets, [256]bool{}
	for k, v := range changed {
		i := t.bucket(k)
		if !own[i] {
			own[i] = true
			if buckets[i] = maps.Clone(buckets[i]); buckets[i] == nil {
				buckets[i] = map[K]*V{}
			}
		}
		if v == nil {
			delete(buckets[i], k)
		} else {
			buckets[i][k] = v
		}
	}
	return table[K, V]{t.bucket, &buckets}
}

// changes are what a transaction does to a table.
type changes[K comparable, V any] struct {
	was table[K, V]
	now map[K]*V // by key; nil is taken out
}

func changesOf[K comparable, V any](was table[K, V]) changes[K, V] {
	return changes[K, V]{was, map[K]*V{}}
}

// get returns a value as the transaction sees it, or nil. It must not be changed.
func (c *changes[K, V]) get(k K) *V {
	if v, ok := c.now[k]; ok {
		return v
	}
	return c.was.get(k)
}

// edit returns a value to be changed; it is zero if there is none yet.
func (c *changes[K, V]) edit(k K) *V {
	if v := c.now[k]; v != nil {
		return v
	}
	own := new(V)
	if v := c.get(k); v != nil {
		*own = *v
	}
	c.now[k] = own
	return own
}

// remove takes a value out.
func (c *changes[K, V]) remove(k K) { c.now[k] = nil }

// after is the table behind the transaction.
func (c *changes[K, V]) after() table[K, V] { return c.was.with(c.now) }
