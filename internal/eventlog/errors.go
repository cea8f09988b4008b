package eventlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// How an append can end other than well.
var (
	// ErrRefused: definitely not stored; the log was not as expected, the
	// message is above a limit, or nobody is there who keeps the stream.
	ErrRefused = errors.New("refused by the log")
	// ErrUnknown: it may or may not be stored.
	ErrUnknown = errors.New("outcome unknown")
	// ErrNoSpace: the disk or the stream's limit is full.
	ErrNoSpace = errors.New("no space left for the log")
	// ErrStopped: the server found that it cannot write, and stores nothing more
	// before it is restarted: neither this message nor one sent before it can
	// still arrive.
	ErrStopped = errors.New("the log's server stores nothing until it is restarted")
	// ErrClosed: the stream or the connection was closed before sending.
	ErrClosed = errors.New("log is closed")
	// ErrNoLeader: nobody leads the stream now, so that what its replicas say need not
	// be all that it holds.
	ErrNoLeader = errors.New("the stream has no leader")
	// ErrNotFound: no message at that sequence, or no such stream.
	ErrNotFound = errors.New("not in the stream")
)

// How opening can fail.
var (
	// ErrAddressTaken: something else listens on the client address.
	ErrAddressTaken = errors.New("address is taken")
	// ErrStoreDamaged: files of the log are there but the server cannot load them.
	ErrStoreDamaged = errors.New("log store is damaged")
	// ErrUnreachable: the external server does not answer.
	ErrUnreachable = errors.New("log is unreachable")
	// ErrNoSyncProof: nothing shows that the external server syncs before it acks.
	ErrNoSyncProof = errors.New("no proof that the log's server syncs to disk before it acknowledges")
	// ErrLazySync: a server says that it does not. It is an ErrNoSyncProof, too.
	ErrLazySync = errors.New("sync_interval is not \"always\"")
	// ErrNobodyToAsk: neither monitoring addresses nor a user of the system account are
	// given, who could say whether the servers sync. It is an ErrNoSyncProof, too.
	ErrNobodyToAsk = errors.New("there is nobody to ask: neither monitoring addresses nor a user of the system account are given")
	// ErrCredentials: the external server does not know the caller. It is an
	// ErrUnreachable, too.
	ErrCredentials = errors.New("the server refuses the credentials")
	// ErrAccess: a file of credentials or certificates cannot be used.
	ErrAccess = errors.New("the access to the external NATS cannot be used")
)

// GapError says that a sequence is missing. Got is the one that came instead,
// 0 when the log ends before Want. With Detail something is there, but it
// cannot be read.
type GapError struct {
	Want, Got uint64
	Detail    string
}

func (e *GapError) Error() string {
	if e.Detail != "" {
		return fmt.Sprintf("sequence %d cannot be read: %s", e.Want, e.Detail)
	}
	if e.Got == 0 {
		return fmt.Sprintf("log ends before sequence %d", e.Want)
	}
	return fmt.Sprintf("sequence %d is missing, the next one is %d", e.Want, e.Got)
}

// Kinds of divergence between log and state.
const (
	KindIdentity   = "identity"    // the stream was deleted and created again
	KindSuffixLost = "suffix_lost" // the log ends before the state
	KindGap        = "gap"         // sequences are missing inside the log, or before its first
	KindLost       = "lost"        // the server reports messages that it lost
	KindHash       = "hash"        // a message is not the one that the state applied
	KindChain      = "chain"       // the last message does not lead to the state's chain
)

// DivergedError says that log and state contradict each other. Writes stop
// until the log is repaired or the state rebuilt.
type DivergedError struct {
	Kind   string
	Seq    uint64 // where it shows, 0 if nowhere in particular
	Detail string
	Hint   string // what a person can do
	asked  bool   // Read found it, and has asked again for as long as it may pass
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("log and state disagree (%s): %s", e.Kind, e.Detail)
}

const hintRepair = "memctl log verify shows the extent; memctl log repair writes the missing messages again from state"

func diverged(kind string, seq uint64, format string, args ...any) *DivergedError {
	return &DivergedError{Kind: kind, Seq: seq, Detail: fmt.Sprintf(format, args...), Hint: hintRepair}
}

// IdentityLost is the divergence of a state whose stream is another one now; why says so.
func IdentityLost(why error) *DivergedError { return diverged(KindIdentity, 0, "%v", why) }

// ConfigError says that a stream exists with a configuration under which an
// acknowledgement would not mean what it should.
type ConfigError struct {
	Stream      string
	Differences []string // "field: is X, must be Y"
}

// ErrOtherCluster: the stream was made by a node of another cluster. A ConfigError
// that says so is one.
var ErrOtherCluster = errors.New("the log is that of another cluster")

// Is reports whether the stream is that of another cluster.
func (e *ConfigError) Is(target error) bool {
	return target == ErrOtherCluster && slices.ContainsFunc(e.Differences, func(d string) bool { return strings.HasPrefix(d, "metadata "+metaCluster) })
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("stream %s is configured differently: %s", e.Stream, strings.Join(e.Differences, "; "))
}

// AddressError is an ErrAddressTaken with the address.
type AddressError struct {
	Addr string
	Err  error
}

func (e *AddressError) Error() string        { return fmt.Sprintf("listen on %s: %v", e.Addr, e.Err) }
func (e *AddressError) Unwrap() error        { return e.Err }
func (e *AddressError) Is(target error) bool { return target == ErrAddressTaken }

// DamageError is an ErrStoreDamaged with what could not be loaded.
type DamageError struct {
	Dir     string
	Streams []string // folders of streams that the server did not load
	Detail  string
}

func (e *DamageError) Error() string {
	if len(e.Streams) > 0 {
		return fmt.Sprintf("%v: %s: streams not loaded: %s: %s", ErrStoreDamaged, e.Dir, strings.Join(e.Streams, ", "), e.Detail)
	}
	return fmt.Sprintf("%v: %s: %s", ErrStoreDamaged, e.Dir, e.Detail)
}
func (e *DamageError) Is(target error) bool { return target == ErrStoreDamaged }
