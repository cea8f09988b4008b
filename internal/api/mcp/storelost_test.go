package mcp_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"mneme/client"
	"mneme/internal/likeness"
	"mneme/memory"
)

// beforeCaptures does something before each capture.
type beforeCaptures func()

func (f beforeCaptures) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/events") && r.Method == http.MethodPost {
		f()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestAStoreWasRefusedForASourceItDidNotName: what was like it, and was forgotten between the search and
// the store. Sources that were named are the caller's, and are refused.
func TestAStoreWasRefusedForASourceItDidNotName(t *testing.T) {
	w := newWorld(t)
	near := ""
	api, err := client.New(w.node.HTTPAddr(), client.Options{HTTPClient: &http.Client{Transport: beforeCaptures(func() {
		if near != "" {
			_, _ = w.api.Forget(t.Context(), "team", near, client.WriteOptions{As: "ann"})
		}
	})}})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	s := w.beside(api)
	const said, nearly = "We deploy the billing service on Tuesdays.", "we deploy the billing service on Tuesdays"
	source := w.sources(1)[0]
	for name, from := range map[string][]string{"none": {}, "one": {source}} {
		near = ""
		first, _ := storing(t, s, map[string]any{"text": nearly + "!", "conversation": name})
		near = first.ID
		got, text := storing(t, s, map[string]any{"text": said, "conversation": name, "derived_from": from})
		rec := w.record(got.ID, "ann")
		if got.Status != "created" || got.Like != nil || strings.Contains(text, near) || !slices.Equal(rec.DerivedFrom, from) {
			t.Errorf("%s named: %+v, %s\n%+v", name, got, text, rec)
		}
		if s := likeness.SaidOf(rec.Metadata); s.Near != "" || s.Similarity != 0 || s.Repeats != 0 || s.Nonce == "" {
			t.Errorf("%s named: %+v", name, s)
		}
		if again, _ := storing(t, s, map[string]any{"text": said, "conversation": name}); again.ID != got.ID || again.Times != 2 {
			t.Errorf("%s named, again: %+v", name, again)
		}
		if _, err := w.api.Forget(t.Context(), "team", got.ID, client.WriteOptions{As: "ann"}); err != nil {
			t.Fatal(err)
		}
	}

	near = ""
	first, _ := storing(t, s, map[string]any{"text": nearly, "conversation": "two"})
	near = first.ID
	if text, failed := call(t, s, "memory_store", map[string]any{"text": said, "conversation": "two", "derived_from": []string{first.ID}}, nil); !failed || !strings.HasPrefix(text, "invalid: derived_from: ") || !strings.Contains(text, first.ID) {
		t.Errorf("a source that was named: %s", text)
	}
	if there := w.all(said); len(there) != 0 {
		t.Errorf("and was stored: %+v", there)
	}
}

// TestWhatWasSaidToBeThereWentWithAnImport: a store counted on a memory of an import, which is taken
// back, or revised by its file, as if nobody else had said it.
func TestWhatWasSaidToBeThereWentWithAnImport(t *testing.T) {
	w := newWorld(t)
	s := w.connect("?namespace=team&agent=ann", nil)
	items := []memory.Capture{
		{Agent: "ann", Text: "The harbour opens at six."}, // of lines, which say nothing of an import
		{Agent: "ann", Text: "The harbour closes at nine.", URI: "imported/notes/1", Metadata: []byte(`{"imported":{"from":"markdown","source":"notes"}}`)},
	}
	resp, err := w.api.CaptureBatch(t.Context(), "team", items, client.CaptureOptions{Origin: memory.OriginImport})
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range items {
		imported := resp.Results[i].RecordID
		own, text := storing(t, s, map[string]any{"text": item.Text})
		if own.Status != "created" || own.ID == imported || own.Like == nil || own.Like.ID != imported || !own.Like.Same || !own.Like.Linked {
			t.Errorf("%+v, %s", own, text)
		}
		for times := range 2 {
			if again, text := storing(t, s, map[string]any{"text": item.Text}); again.ID != own.ID || again.Times != 3+times {
				t.Errorf("again: %+v, %s", again, text)
			}
		}
		if rec := w.record(imported, "ann"); rec.Version != 1 {
			t.Errorf("the imported one was counted on: %+v", rec)
		}
		if _, err := w.api.Forget(t.Context(), "team", imported, client.WriteOptions{As: "ann"}); err != nil {
			t.Fatal(err)
		}
		if again, text := storing(t, s, map[string]any{"text": item.Text}); again.ID != own.ID || again.Times != 5 {
			t.Errorf("once the import is taken back: %+v, %s", again, text)
		}
	}
}

// TestAnAddressOfAnImportIsCountedOn: there is no other place for what is stored under it.
func TestAnAddressOfAnImportIsCountedOn(t *testing.T) {
	w := newWorld(t)
	item := memory.Capture{Agent: "ann", Text: "The harbour closes at nine.", URI: "imported/notes/1"}
	resp, err := w.api.CaptureBatch(t.Context(), "team", []memory.Capture{item}, client.CaptureOptions{Origin: memory.OriginImport})
	if err != nil {
		t.Fatal(err)
	}
	got, text := storing(t, w.connect("?namespace=team&agent=ann", nil), map[string]any{"text": item.Text, "uri": item.URI})
	if got.ID != resp.Results[0].RecordID || got.Times != 2 {
		t.Errorf("%+v, %s", got, text)
	}
}
