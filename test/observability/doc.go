// Package observability holds alert rules and dashboards of deploy/observability against
// the metrics that a node shows, and causes alerts on real nodes. It is a module of its own,
// so that Prometheus's query engine is no dependency of the product.
//
// Its ground is the table of docs/operate/metrics.md, which a test of internal/node holds
// against a running node: a metric or a label that is not there is used by nothing here.
package observability
