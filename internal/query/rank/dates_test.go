package rank

import (
	"testing"
	"time"
)

// TestWithoutStamp: when a question was asked is cut off, and what it asks about is not.
func TestWithoutStamp(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for query, want := range map[string]string{
		"where does my cousin live 2024-04-04 07:42":                    "where does my cousin live",
		"where does my cousin live (asked at 2024-04-04 07:42)":         "where does my cousin live",
		"where does my cousin live, 2024-04-04T07:42:00Z":               "where does my cousin live",
		"我的表弟住在哪里？（提问时间：2024年04月04日 周四 07:42）":                          "我的表弟住在哪里？",
		"which alert was set up on 2026-04-19 10:00":                    "",
		"who was on call at 2026-04-19 10:00?":                          "",
		"which deploys were there since 2026-04-19 10:00":               "",
		"what broke between 2026-04-19 10:00 and 2026-04-20 11:00":      "",
		"wer hatte Dienst am 2026-04-19 10:00":                          "",
		"which alert was set up on 2026-04-19 (asked 2026-05-01 09:00)": "which alert was set up on 2026-04-19",
		"2026-04-19 10:00": "",
		"2026-04-19":       "",
	} {
		if want == "" {
			want = query
		}
		if got := WithoutStamp(query, now); got != want {
			t.Errorf("%q became %q, want %q", query, got, want)
		}
	}
}
