package memory

import "strings"

// MakeName turns a name for people into a valid name of an agent or namespace: lower case,
// with a - for each run of what such names do not have. It is empty if nothing is left.
func MakeName(s string) string {
	var sb strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		ok := r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_'
		if !ok || r == '_' && sb.Len() == 0 {
			gap = sb.Len() > 0
			continue
		}
		if gap {
			sb.WriteByte('-')
			gap = false
		}
		sb.WriteRune(r)
	}
	name := sb.String()
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-")
	}
	return name
}
