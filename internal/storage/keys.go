package storage

import "bytes"

// PrefixEnd returns the smallest key after all keys that begin with prefix, in a
// new slice; nil means that there is none (the prefix is empty or all 0xFF), which
// is also how Pebble writes "no upper bound".
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
