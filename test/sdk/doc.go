// Package sdk holds the tests of the clients in other languages, sdk/python and
// sdk/typescript, and of the examples of all three.
//
// Its job: to write the parts of the clients that follow from the OpenAPI document
// (types and the table of operations), and to fail when the document has gone on
// without them (-rewrite writes them anew); to run the suites of the clients and
// every example against a real memnode, with a stub in the place of a model.
//
// Not its job: what a node answers (package e2e), the Go client (package client).
package sdk
