package main

import (
	"testing"
)

// What Kubernetes puts into a container for the services mneme and mneme-peers.
var serviceVariables = []string{
	"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443",
	"MNEME_SERVICE_HOST=10.96.12.7", "MNEME_SERVICE_PORT=8787", "MNEME_SERVICE_PORT_HTTP=8787", "MNEME_SERVICE_PORT_NATS=4222",
	"MNEME_PORT=tcp://10.96.12.7:8787",
	"MNEME_PORT_8787_TCP=tcp://10.96.12.7:8787", "MNEME_PORT_8787_TCP_PROTO=tcp", "MNEME_PORT_8787_TCP_PORT=8787", "MNEME_PORT_8787_TCP_ADDR=10.96.12.7",
	"MNEME_PORT_4222_TCP=tcp://10.96.12.7:4222", "MNEME_PORT_4222_TCP_PROTO=tcp", "MNEME_PORT_4222_TCP_PORT=4222", "MNEME_PORT_4222_TCP_ADDR=10.96.12.7",
	"MNEME_PEERS_SERVICE_HOST=10.96.12.8", "MNEME_PEERS_SERVICE_PORT=8800", "MNEME_PEERS_PORT=tcp://10.96.12.8:8800", "MNEME_PEERS_PORT_8800_TCP=tcp://10.96.12.8:8800",
}

// A service called mneme once ended memnode: "the environment variable MNEME_PORT is unknown".
func TestVariablesOfKubernetesServicesAreNoSettings(t *testing.T) {
	w := stopsWhenReady(t, newFake())
	w.environ = append([]string{"MNEME_LOG_LEVEL=warn"}, serviceVariables...)
	if code := w.run(); code != 0 {
		t.Fatalf("exit %d: %s", code, w.err)
	}
	if w.opens != 1 {
		t.Errorf("opened %d times", w.opens)
	}
	if rows := w.config(t); rows["log-level"].Value != "warn" {
		t.Errorf("log-level is %v: the settings beside them do not count", rows["log-level"].Value)
	}
}

func TestVariablesThatOnlyLookLikeAServiceAreUnknown(t *testing.T) {
	for name, environ := range map[string][]string{
		"a port alone":                 {"MNEME_HTTP_PORT=8787"},
		"a host without its port":      {"MNEME_HTTP_SERVICE_HOST=a"},
		"a port of another service":    append([]string{"MNEME_HTTP_PORT=8787"}, serviceVariables...),
		"a setting beside the service": append([]string{"MNEME_HTTP_ADDRES=x"}, serviceVariables...),
		"what no service has":          append([]string{"MNEME_PORT_8787_TCP_NAME=x"}, serviceVariables...),
		"a service that is not ours":   {"XMNEME_SERVICE_HOST=a", "XMNEME_SERVICE_PORT=1", "MNEME_PORT=tcp://a:1"},
		"a beginning that is cut":      {"MNEM_SERVICE_HOST=a", "MNEM_SERVICE_PORT=1", "MNEME_PORT=1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fails(t, nil)
			w.environ = environ
			if code := w.run(); code != exitUsage {
				t.Errorf("exit %d, want %d", code, exitUsage)
			}
			wantHas(t, "standard error", w.err.String(), "the environment variable MNEME_", "is unknown")
		})
	}
}
