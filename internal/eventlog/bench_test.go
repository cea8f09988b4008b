package eventlog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"mneme/internal/eventlog"
)

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{512, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			st := openStream(b, startServer(b, eventlog.ServerOptions{}), eventlog.StreamConfig{})
			data, last := make([]byte, size), uint64(0)
			took := make([]time.Duration, 0, 1024)
			for b.Loop() {
				start := time.Now()
				must(b, st.Append(b.Context(), data, last))
				last++
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkRead compares our batched direct gets with the client library's
// ordered consumer.
func BenchmarkRead(b *testing.B) {
	const n = 100_000
	s := startServer(b, eventlog.ServerOptions{})
	st := openStream(b, s, eventlog.StreamConfig{})
	nc, err := s.NodeConn(b.Context())
	must(b, err)
	js, err := jetstream.New(nc)
	must(b, err)
	data := make([]byte, 256)
	for i := range n {
		_, err := js.PublishAsync("mem.log.0", data)
		must(b, err)
		if i%1000 == 999 {
			<-js.PublishAsyncComplete()
		}
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			read := 0
			must(b, st.Read(b.Context(), 1, n, func(eventlog.Message) error { read++; return nil }))
			if read != n {
				b.Fatal(read)
			}
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	})
	b.Run("ordered", func(b *testing.B) {
		for b.Loop() {
			c, err := js.OrderedConsumer(b.Context(), "mneme-0", jetstream.OrderedConsumerConfig{})
			must(b, err)
			it, err := c.Messages()
			must(b, err)
			for range n {
				_, err := it.Next()
				must(b, err)
			}
			it.Stop()
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	})
}
