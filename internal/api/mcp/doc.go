// Package mcp shows memories to agents by the Model Context Protocol: tools, resources,
// prompts and completions over one namespace, for clients of every revision that the Go SDK
// speaks.
//
// Its job: the names, schemas and descriptions of the tools, and how an answer reads for a
// language model. It works through the public client, so that whatever bounds, checks and
// rights a request has are those of the HTTP API, whether the server runs beside an agent
// (memctl mcp) or in a node (/mcp).
//
// Invariants: what a memory says is quoted and never mixed with what a tool says; a tool
// answers errors as results, with what to do about them; the list of tools depends on the
// profile alone.
//
// Not its job: reading and writing memories (client), who may (auth), starting a node
// (memctl).
package mcp
