package settings

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mneme/memory"
)

// Bounds of the aliases of a namespace.
const (
	maxAliasBytes  = 16 << 10
	maxAliasGroups = 200
	maxAliasNames  = 16 // of a group
	maxAliasRunes  = 64 // of a name
)

// aliasGroups takes the value of Aliases apart: groups with a semicolon or a new line
// between them, names of a group with an equals sign between them, such as
// "k8s = kubernetes; pr = pull request = merge request".
func aliasGroups(v string) (groups [][]string) {
	for _, line := range strings.FieldsFunc(v, func(r rune) bool { return r == ';' || r == '\n' }) {
		var names []string
		for name := range strings.SplitSeq(line, "=") {
			names = append(names, strings.Join(strings.Fields(name), " "))
		}
		if len(names) > 1 || names[0] != "" {
			groups = append(groups, names)
		}
	}
	return groups
}

// aliases checks the value of Aliases.
func aliases(v string) error {
	groups := aliasGroups(v)
	if len(v) > maxAliasBytes || len(groups) > maxAliasGroups || !utf8.ValidString(v) {
		return memory.Errorf(memory.CodeInvalid, "must be text of at most %d bytes and %d groups", maxAliasBytes, maxAliasGroups)
	}
	for _, names := range groups {
		if len(names) < 2 || len(names) > maxAliasNames {
			return memory.Errorf(memory.CodeInvalid, "must be groups of 2 to %d names, such as k8s = kubernetes; pr = pull request = merge request", maxAliasNames)
		}
		for _, name := range names {
			if utf8.RuneCountInString(name) > maxAliasRunes || !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
				return memory.Errorf(memory.CodeInvalid, "must hold names of a letter or digit at least and %d characters at most", maxAliasRunes)
			}
		}
		if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) < len(names) {
			return memory.Errorf(memory.CodeInvalid, "must hold each name of a group once")
		}
	}
	return nil
}
