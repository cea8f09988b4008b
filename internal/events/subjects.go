package events

import (
	"fmt"
	"strconv"
	"strings"

	"mneme/memory"
)

// Subjects of the bus. Agents publish to mem.in, read mem.feed and ask mem.api;
// mem.log belongs to the shard's leader.
const (
	SubjectIn   = "mem.in"
	SubjectFeed = "mem.feed"
	SubjectAPI  = "mem.api"
	SubjectLog  = "mem.log"
)

// CaptureQueue is the queue group in which memnodes share what callers publish.
const CaptureQueue = "memnode"

// PublicPrincipal is everyone who talks to a node without a principal of its
// own: all callers while auth is off or there is one shared token.
const PublicPrincipal = "public"

// spokenBy begins the subjects that responders see: the account of a principal
// maps what it publishes to as.<principal>.<subject>, so that a responder knows
// who speaks without trusting anything in the message.
const spokenBy = "as"

// Spoken is how a responder sees what a principal published to subject.
func Spoken(principal, subject string) string { return SpokenAt("", principal, subject) }

// SpokenAt is the same at one of several servers: as-<server>.<principal>.<subject>. Only
// the node beside that server answers there, so that what one connection publishes is
// taken by one node, in its order: the members of a queue group at several servers take
// turns.
func SpokenAt(server, principal, subject string) string {
	by := spokenBy
	if server != "" {
		by += "-" + server
	}
	return by + "." + principal + "." + subject
}

// ParseSpoken splits what SpokenAt makes.
func ParseSpoken(subject string) (principal, said string, err error) {
	by, rest, _ := strings.Cut(subject, ".")
	ok := by == spokenBy || strings.HasPrefix(by, spokenBy+"-")
	principal, said, more := strings.Cut(rest, ".")
	if !ok || !more || principal == "" || said == "" {
		return "", "", memory.Errorf(memory.CodeInvalid, "subject %.120q did not come through an account of Mneme", subject).
			WithHint("an external NATS needs the accounts that `memctl nats-config` prints")
	}
	return principal, said, nil
}

// LogSubject is where the frames of a shard are published whose stream begins
// with this epoch.
func LogSubject(shard uint16, epoch uint32) string {
	if epoch == 0 {
		return fmt.Sprintf("%s.%d", SubjectLog, shard)
	}
	return fmt.Sprintf("%s.%d.%d", SubjectLog, shard, epoch)
}

// StreamName is the JetStream stream of a shard that begins with this epoch. A
// stream is never made again under its old name: somebody who does not know of
// the repair yet would write to it.
func StreamName(shard uint16, epoch uint32) string {
	if epoch == 0 {
		return fmt.Sprintf("mneme-%d", shard)
	}
	return fmt.Sprintf("mneme-%d-%d", shard, epoch)
}

// ParseStreamName reads what StreamName wrote.
func ParseStreamName(name string) (shard uint16, epoch uint32, ok bool) {
	rest, ok := strings.CutPrefix(name, "mneme-")
	number, later, _ := strings.Cut(rest, "-")
	s, err := strconv.ParseUint(number, 10, 16)
	e, lerr := strconv.ParseUint("0"+later, 10, 32)
	shard, epoch = uint16(s), uint32(e)
	return shard, epoch, ok && err == nil && lerr == nil && StreamName(shard, epoch) == name
}

// ParseCaptureSubject splits mem.in.<ns>.<agent>.capture, where an agent publishes
// what it wants remembered.
func ParseCaptureSubject(subject string) (namespace, agent string, err error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != "mem" || parts[1] != "in" || parts[4] != "capture" {
		return "", "", memory.Errorf(memory.CodeInvalid, "subject %.120q is not of the form mem.in.<namespace>.<agent>.capture", subject)
	}
	if e := memory.CheckName("namespace", parts[2]); e != nil {
		return "", "", e
	}
	if e := memory.CheckName("agent", parts[3]); e != nil {
		return "", "", e
	}
	return parts[2], parts[3], nil
}

// FeedSubject is where an applied event is announced. Events of the namespace
// itself are announced to the team.
func FeedSubject(namespace string, scope Scope, agent string, t Type) string {
	if scope == ScopeAgent {
		return SubjectFeed + "." + namespace + ".agent." + agent + "." + feedType(t)
	}
	return SubjectFeed + "." + namespace + ".team." + feedType(t)
}

// feedType is the last token of a feed subject: dots separate tokens, so a
// type keeps only its verb ("captured", "revised", …); a graph's is not the namespace's.
func feedType(t Type) string {
	if t == TypeGraphChanged {
		return "graph-changed"
	}
	s := t.String()
	return s[strings.IndexByte(s, '.')+1:]
}
