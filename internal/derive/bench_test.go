package derive

import (
	"testing"

	"mneme/internal/embed"
	"mneme/internal/embed/static"
	"mneme/internal/events"
	"mneme/internal/settings"
)

// BenchmarkContribute derives a memory of average length, as each capture and each
// event of a rebuild is.
func BenchmarkContribute(b *testing.B) {
	set := &settings.Effective{}
	set.Space = embed.Space{Provider: embed.ProviderBuiltin, Model: static.Name, Dimensions: static.Dimensions, Normalised: true, Version: static.Version}
	c := &events.Content{Text: "The deploy of billing-api failed at 3 pm because the migration of the invoices table " +
		"took longer than the readiness probe allows; we raised initialDelaySeconds to 120 and it went through."}
	env := &events.Envelope{Header: events.Header{Agent: "ann"}}
	b.ReportAllocs()
	for b.Loop() {
		if got := contribute(env, set, c); len(got.Vectors) != 1 {
			b.Fatal("no vector")
		}
	}
}
