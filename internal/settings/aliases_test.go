package settings

import (
	"reflect"
	"strings"
	"testing"
)

func TestAliases(t *testing.T) {
	long := strings.Repeat("x", maxAliasRunes+1)
	for value, ok := range map[string]bool{
		"":                  true,
		"k8s = kubernetes":  true,
		"a=b;c = d e = f\n": true,
		"k8s":               false,
		"k8s =":             false,
		"= k8s":             false,
		"a = a":             false,
		"a = -":             false,
		"a = " + long:       false,
		"a = \xff":          false,
		"a = b" + strings.Repeat(" = x", maxAliasNames): false,
		strings.Repeat("a=b;", maxAliasGroups):          true,
		strings.Repeat("a=b;", maxAliasGroups+1):        false,
		"a = b" + strings.Repeat(" ", maxAliasBytes):    false,
	} {
		if err := Check(map[string]string{Aliases: value}, false); (err == nil) != ok {
			t.Errorf("%.40q: %v", value, err)
		}
	}
	got := Resolve(map[string]string{Aliases: "pr = pull  request = mr;; k8s=kubernetes"}).Aliases
	if want := [][]string{{"pr", "pull request", "mr"}, {"k8s", "kubernetes"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}
