package eventlog_test

import (
	"testing"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
)

func TestContractFake(t *testing.T) {
	eventlogtest.Run(t, func(*testing.T) eventlog.Stream { return eventlogtest.NewFake() })
}

func TestContractJetStream(t *testing.T) {
	shard := uint16(0)
	s := startServer(t, eventlog.ServerOptions{})
	eventlogtest.Run(t, func(t *testing.T) eventlog.Stream {
		shard++
		return openStream(t, s, eventlog.StreamConfig{Shard: shard, ClusterID: "test"})
	})
}
