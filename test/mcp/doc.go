// Package mcp holds the node and memctl mcp against the Model Context Protocol's own
// conformance suite and inspector, which are programs of npm: npm ci in this directory, or make
// test, installs them.
package mcp
