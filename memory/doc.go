// Package memory is Mneme's vocabulary: the values that users, transports and
// the Go client exchange with a node. It imports the standard library only and
// holds no behaviour beyond validation, so that every other package, inside
// and outside this module, can speak it.
//
// The JSON shapes here are the REST, NATS and command-line shapes; there is one
// Record, one AuditRow and one Event shape everywhere.
package memory
