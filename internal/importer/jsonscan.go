package importer

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// halved is why what a decoder makes of JSON is not what stands there.
const halved = "half of a character (a surrogate without its other half), in whose place U+FFFD stands"

// hasHalf reports whether JSON has half of a character, which a decoder replaces without a word.
func hasHalf(raw []byte) bool {
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 || at+1 >= len(raw) {
			return false
		}
		raw = raw[at:]
		first, size := surrogate(raw)
		if size == 0 {
			raw = raw[2:]
			continue
		}
		raw = raw[size:]
		switch {
		case first < 0xd800 || first > 0xdfff:
		case first >= 0xdc00:
			return true
		default:
			if second, size := surrogate(raw); second < 0xdc00 || second > 0xdfff {
				return true
			} else {
				raw = raw[size:]
			}
		}
	}
}

// surrogate reads \uXXXX; its size is 0 where something else stands there.
func surrogate(raw []byte) (code uint64, size int) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, 0
	}
	code, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return 0, 0
	}
	return code, 6
}

// repeatedKey is a key that an object has twice, as encoding/json compares them, which takes the last one; "" where there is none.
func repeatedKey(object []byte) string {
	var keys []string
	depth, isKey := 0, false
	for at := 0; at < len(object); at++ {
		switch object[at] {
		case '{', '[':
			depth++
			isKey = depth == 1
		case '}', ']':
			depth--
		case ',':
			isKey = depth == 1
		case '"':
			end := at + 1
			for end < len(object) && object[end] != '"' {
				if object[end] == '\\' {
					end++
				}
				end++
			}
			if isKey && end < len(object) {
				isKey = false
				var key string
				if json.Unmarshal(object[at:end+1], &key) != nil {
					return ""
				}
				for _, k := range keys {
					if strings.EqualFold(k, key) {
						return key
					}
				}
				keys = append(keys, key)
			}
			at = end
		}
	}
	return ""
}
