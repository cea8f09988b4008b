package api

import "testing"

func TestTraceID(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for header, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01":                 id,
		"cc-" + id + "-00f067aa0ba902b7-01-what-the-future": id,
		"": "", "00-" + id: "", "ff-" + id + "-00f067aa0ba902b7-01": "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-" + id + "-0000000000000000-01":                       "",
		"00-" + id + "-00f067aa0ba902b7-01x":                      "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
	} {
		if got := TraceID(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
