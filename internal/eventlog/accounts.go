package eventlog

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"mneme/internal/events"
)

// Accounts are the wall between the log and everyone who is not the node. The
// node and JetStream live in NODE. Callers live in accounts of their own, which
// import the services and the feeds and nothing else. An answer to an imported
// service returns through a reply subject that the server made (_R_.…), so that
// a caller's reply subject can only name something in the caller's own account.
// There it can name anything: callers that share an account can send each other
// the node's answers as acks, answers or feed messages. Permissions do not cover
// reply subjects; only an account for each principal ends that.
//
// The names become directories of JetStream and are therefore never changed.
const (
	nodeAccount   = "NODE"
	publicAccount = "PUBLIC"
	systemAccount = "SYS"
)

// discovery is where tools ask for NATS services (nats.io micro protocol).
const discovery = "$SRV.>"

// streamsDir is where JetStream keeps the streams of the log below dir.
func streamsDir(dir string) string { return filepath.Join(dir, "jetstream", nodeAccount, "streams") }

// serviceSubjects are what callers may publish to.
func serviceSubjects() []string {
	return []string{events.SubjectIn + ".>", events.SubjectAPI + ".>"}
}

// accountsConfig is the configuration of the accounts and of limits in nats-server's
// own language: the embedded server reads the same text that an operator puts in
// the file of an external one. server is the embedded one's name among several, "" if it
// is alone, see events.SpokenAt. users names the users of an account; nil gives
// none, because the embedded server has an authenticator instead. callers bounds
// the connections of the public account.
//
// Exports must stand in the options at start: one that is added later meets
// reconnecting clients that have been refused the import already.
func accountsConfig(server string, users func(account string) string, callers int) string {
	if users == nil {
		users = func(string) string { return "" }
	}
	var exports, imports strings.Builder
	for _, s := range serviceSubjects() {
		fmt.Fprintf(&exports, "      { service: %q, threshold: %q }\n", events.SpokenAt(server, "*", s), responseThreshold)
		fmt.Fprintf(&imports, "      { service: { account: %s, subject: %q }, to: %q }\n",
			nodeAccount, events.SpokenAt(server, events.PublicPrincipal, s), s)
	}
	fmt.Fprintf(&exports, "      { service: %q, response: stream, threshold: %q }\n", discovery, discoveryThreshold)
	fmt.Fprintf(&imports, "      { service: { account: %s, subject: %q } }\n", nodeAccount, discovery)
	feeds := events.SubjectFeed + ".>"
	fmt.Fprintf(&exports, "      { stream: %q }\n", feeds)
	fmt.Fprintf(&imports, "      { stream: { account: %s, subject: %q } }\n", nodeAccount, feeds)
	return fmt.Sprintf(`max_control_line: %d
ping_interval: %q
ping_max: %d

accounts {
  %s {
    jetstream: enabled
    exports: [
%s    ]
%s  }
  %s {
    limits { max_connections: %d, max_subscriptions: %d } # subscriptions: of each connection
    imports: [
%s    ]
%s  }
  %s {
%s  }
}
system_account: %s
`, maxControlLine, pingInterval, maxPings, nodeAccount, exports.String(), users(nodeAccount), publicAccount, callers, maxCallerSubs, imports.String(), users(publicAccount),
		systemAccount, users(systemAccount), systemAccount)
}

// publicPermissions is all that a caller may do inside its account. It may not
// publish to inboxes: answers come from the services it imports, so nobody has
// to. What it can still forge is an answer of the node: see the accounts above.
func publicPermissions() *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: append(serviceSubjects(), discovery)},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", events.SubjectFeed + ".>"}},
	}
}

func quoted(subjects []string) string {
	out := make([]string, len(subjects))
	for i, s := range subjects {
		out[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(out, ", ")
}

// PublicSubjects are what callers may publish and subscribe to.
func PublicSubjects() (publish, subscribe []string) {
	p := publicPermissions()
	return p.Publish.Allow, p.Subscribe.Allow
}
