package keyring

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// leaks looks for the bytes of s in text as text, hexadecimal or a list of numbers.
func leaks(text string, s *secret) bool {
	list := strings.Trim(fmt.Sprint(s[:8]), "[]")
	var gosyntax []string
	for _, b := range s[:8] {
		gosyntax = append(gosyntax, fmt.Sprintf("%#x", b))
	}
	for _, form := range []string{string(s[:8]), hex.EncodeToString(s[:8]), list, strings.Join(gosyntax, ", ")} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
			return true
		}
	}
	return false
}

func TestSecretsNeverPrint(t *testing.T) {
	k := mustOpen(t, newDisk().opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	d := must[*DataKey](t)(k.DataKey(nsA, ""))
	d.MAC("x", nil) // so that the sub-keys exist
	names := must[*NamespaceKeys](t)(k.Namespace(nsA))
	secrets := []*secret{d.raw, names.index, names.names, names.tags, k.master, k.command, k.node.raw, k.secrets.all[0], &k.storage.table.Load().entries[0].key,
		d.subs.Load().mac, d.subs.Load().nonce}
	if !leaks(fmt.Sprintf("%v", [32]byte(*d.raw)), d.raw) || !leaks(fmt.Sprintf("%#v", [32]byte(*d.raw)), d.raw) {
		t.Fatal("the test sees nothing")
	}
	for _, v := range []any{d, names, k, *d.raw, d.raw, struct{ K *DataKey }{d}, struct{ k *DataKey }{d},
		[]*NamespaceKeys{names}, map[string]*Keyring{"k": k}, k.storage, k.storage.table.Load(), k.secrets, &k.state, k.table, k.table.spaces[0], d.subs.Load()} {
		var out strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		out.WriteString(log.String())
		if j, err := json.Marshal(v); err == nil {
			out.Write(j)
		}
		for i, s := range secrets {
			if leaks(out.String(), s) {
				t.Errorf("%T prints secret %d:\n%s", v, i, out.String())
			}
		}
	}
	var none *DataKey
	var noNames *NamespaceKeys
	for text, want := range map[string]string{
		fmt.Sprintf("%v", d): "datakey(" + d.ID().String() + ")", fmt.Sprintf("%#v", none): "datakey(none)",
		names.String(): "namespacekeys(" + hexID(nsA) + ")", noNames.String(): "namespacekeys(none)",
		k.String(): "keyring(redacted)",
	} {
		if text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

func TestKeyIDText(t *testing.T) {
	id := KeyID{1, 0xAB}
	var back KeyID
	text, _ := id.MarshalText()
	if err := back.UnmarshalText(text); err != nil || back != id || id.IsZero() || !(KeyID{}).IsZero() {
		t.Fatal(back, err)
	}
	for _, bad := range []string{"", "ab", strings.Repeat("zz", 16)} {
		if back.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is a key id", bad)
		}
	}
}
