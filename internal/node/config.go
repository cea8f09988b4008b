package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/auth"
	"mneme/internal/embed"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/raftfsm"
	"mneme/internal/replica"
	"mneme/internal/storage"
	"mneme/memory"
)

// OAuth says whose access tokens are taken.
type OAuth = auth.OAuth

// Config of a node. DataDir is required; zero values are the defaults of a
// laptop.
type Config struct {
	DataDir  string
	HTTPAddr string // host:port; port 0 picks one
	NATSAddr string // of the embedded NATS; port 0 picks one
	NATSURL  string // an external NATS instead of the embedded one; several addresses are separated by commas
	External ExternalNATS
	// Shards is how many shards a new data directory, or a new cluster, gets; 0 is 1. One
	// that is there must have as many, unless it is 0.
	Shards int
	// Cluster makes the node one of several; nil is a node on its own.
	Cluster   *ClusterConfig
	Auth      string // "off" or "token"
	AuthToken string // the operator token; "" = the file in keys/
	Embedder  embed.Config
	// Environment gives namespaces that chose another provider than Embedder
	// their keys and addresses; nil = nothing.
	Environment embed.Lookup
	// MasterKey is where the keyring's master key comes from; nil = a file in
	// the data directory, made with the keyring.
	MasterKey    keyring.MasterSource
	VectorEngine string
	Namespaces   []string // made at start if missing; an empty data directory gets "default"
	Dev          bool     // write without proof that the log is synced
	Insecure     bool     // listen off loopback without auth, or with a token in clear
	// TLS towards clients; nil is none.
	TLS *TLSConfig
	// HealthAddr is where /livez and /readyz are answered in clear; "" is nowhere beside
	// HTTPAddr.
	HealthAddr string
	// AdminSocket is where the operator reaches the node without a token; "" is
	// admin.sock in the data directory.
	AdminSocket  string
	Logger       *slog.Logger
	Traces       Traces // takes the spans of requests; nil = there are none
	Version      string
	DrainTimeout time.Duration
	// OAuth says whose access tokens /mcp takes beside the operator token; nil = nobody's.
	OAuth *OAuth
	// Linger has the node end with ErrIdle when nobody was connected for so long; 0 = it does
	// not.
	Linger       time.Duration
	CacheBytes   int64
	ReserveBytes int64 // what must stay free on the disk for writes to be taken
	// SnapshotThreshold is how many Raft entries lie between two snapshots; 0 is
	// raftfsm's default.
	SnapshotThreshold uint64
	// ScrubEvery is the pause between two slow readings of the whole log, and
	// ScrubRate how many bytes of it are read a second; 0 is the default.
	ScrubEvery time.Duration
	ScrubRate  int64
	Now        func() time.Time
	// FS is where everything is written but what NATS, Raft's log and the lock of
	// the data directory keep; nil = the system's.
	FS vfs.FS

	// Live are the settings that may change while the node runs.
	Live
	// Process is the program that runs the node.
	Process Process

	// Parts replaces parts of the node, for tests and simulations.
	Parts Parts
}

// Live are settings that a running node takes anew. The zero value is a good one.
type Live struct {
	// SlowSearch is how long a search has to take to be logged with its plan; 0 = none is.
	// With SlowSearchText the line has the query's text, too.
	SlowSearch     time.Duration
	SlowSearchText bool

	// TraceShare is the share of the requests that are recorded, 0 to 1, where there are Traces.
	TraceShare float64

	AllowedHosts []string // further names in the Host header
	// AllowedOrigins are origins (scheme://host[:port]) of pages served elsewhere
	// that may call this node.
	AllowedOrigins []string

	Limits Limits
}

// Process is what a node hears of the program that runs it. The zero value is a program that
// has nothing to tell.
type Process struct {
	// Reread reads the settings again, puts into effect what is the program's own, and returns
	// what is the node's, with what has changed. After an error nothing has.
	Reread func() (Live, memory.ReloadReport, error)
	// Settings are those in effect, without secrets.
	Settings func() any
	// Log is the last lines of the log.
	Log func() []byte
	// MemoryLimit is how much memory the process may take before it is killed; 0 is no limit.
	MemoryLimit func() uint64
}

// ClusterConfig says which cluster a node belongs to, and how its nodes reach each
// other. All are required but Expect and the advertised addresses, and RouteAddr where
// the log is on an external NATS.
type ClusterConfig struct {
	NodeID    string   // of this node, for ever; its certificate is named by it
	PeerAddr  string   // where it listens for the others, and where they reach it
	RouteAddr string   // the same for the log's servers
	Join      []string // peer addresses of some of the nodes, its own may be among them
	Certs     string   // folder with the certificates
	// PeerAdvertise and RouteAdvertise are where the others reach it, if that is not
	// where it listens.
	PeerAdvertise, RouteAdvertise string
	// Expect is how many nodes found the cluster together; 0 = this node only joins one
	// that is there.
	Expect int
	// AllowTwo allows Expect to be 2.
	AllowTwo bool
	// ReplaceLost has the node take the place of the one with its id that the cluster knows,
	// where its own data directory is empty.
	ReplaceLost bool
}

// peer is where the others reach the node.
func (c *ClusterConfig) peer() string { return cmp.Or(c.PeerAdvertise, c.PeerAddr) }

// route is where they reach its log server.
func (c *ClusterConfig) route() string { return cmp.Or(c.RouteAdvertise, c.RouteAddr) }

// clusterID is the node's id in its cluster, "" on its own.
func (c *Config) clusterID() string {
	if c.Cluster == nil {
		return ""
	}
	return c.Cluster.NodeID
}

// Parts are what a node is made of, where somebody else than the node may make
// it; nil is the real one.
type Parts struct {
	// Group opens the Raft group.
	Group func(raftfsm.Options) (replica.Group, error)
	// Embedders gives the embedders of spaces outside this process.
	Embedders embedderSource
	// EraseStep is called before each step of an erasure.
	EraseStep func(name string)
	// SinceBoot is the clock that no setting of the wall clock moves.
	SinceBoot func() time.Duration
}

// Defaults of Config.
const (
	DefaultHTTPAddr     = "127.0.0.1:8787"
	DefaultNATSAddr     = "127.0.0.1:4222"
	DefaultDrainTimeout = 20 * time.Second
	DefaultReserveBytes = 256 << 20
)

// MasterKeySource reads the setting master-key: file, file:PATH, env:NAME or
// command:PROGRAM ARGUMENTS.
func MasterKeySource(setting string, getenv func(string) string) (keyring.MasterSource, error) {
	source, err := keyring.ParseMasterSource(setting, getenv)
	if err != nil {
		return nil, usage(err.Error(), "the file is made in the data directory; openssl rand -hex 32 makes a key to be kept elsewhere")
	}
	return source, nil
}

func (c *Config) setDefaults() {
	if c.HTTPAddr == "" {
		c.HTTPAddr = DefaultHTTPAddr
	}
	if c.NATSAddr == "" {
		c.NATSAddr = DefaultNATSAddr
	}
	if c.Auth == "" {
		c.Auth = "off"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.ReserveBytes == 0 {
		c.ReserveBytes = DefaultReserveBytes
	}
	if c.ScrubEvery <= 0 {
		c.ScrubEvery = DefaultScrubEvery
	}
	if c.ScrubRate <= 0 {
		c.ScrubRate = DefaultScrubRate
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.VectorEngine == "" {
		c.VectorEngine = "mneme"
	}
}

// validate refuses what cannot work or is not safe.
func (c *Config) validate() error {
	if c.DataDir == "" {
		return usage("no data directory given", "set --data-dir")
	}
	if c.OAuth != nil {
		if c.Auth != "token" {
			return usage("access tokens are taken beside the operator token, and nobody is asked for one", "give --auth token, or leave the options --oauth-… out")
		}
		if err := c.OAuth.Check(); err != nil {
			return usage(err.Error(), "--oauth-issuer https://login.example.org --oauth-resource https://mneme.example.org/mcp")
		}
	}
	if c.Linger != 0 && (c.Linger < 0 || c.Cluster != nil || c.NATSURL != "") {
		return usage("only a node on its own ends when nobody is connected", "leave --linger out")
	}
	switch c.VectorEngine {
	case "mneme", "coder", "exact":
	default:
		return usage(fmt.Sprintf("vector engine %q is unknown", c.VectorEngine), "engines are mneme, coder and exact")
	}
	switch c.Auth {
	case "off", "token":
	default:
		return usage(fmt.Sprintf("auth mode %q is unknown", c.Auth), "modes are off and token")
	}
	if err := c.Embedder.Validate(); err != nil {
		return usage(err.Error(), "")
	}
	if c.Shards < 0 || c.Shards > maxShards {
		return usage(fmt.Sprintf("%d shards are not supported", c.Shards), fmt.Sprintf("--shards takes 1 to %d", maxShards))
	}
	if err := c.Cluster.validate(c.NATSURL != ""); err != nil {
		return err
	}
	if err := c.validateExternal(); err != nil {
		return err
	}
	if err := c.TLS.validate(); err != nil {
		return err
	}
	return c.checkListening()
}

// validate refuses a cluster that cannot be; outside says that its log is on an external
// NATS.
func (c *ClusterConfig) validate(outside bool) error {
	if c == nil {
		return nil
	}
	if outside && c.route() != "" {
		return usage("there are no log servers to route to: the log is on an external NATS", "leave out --route-addr and --route-advertise, or --nats-url")
	}
	if c.NodeID == "" {
		return usage("a node of a cluster needs an id: --node-id is missing", "--node-id n1, the same at each start; without the options of a cluster the node is on its own")
	}
	if err := memory.CheckName("node", c.NodeID); err != nil {
		return usage(err.Error(), "a node's id is like n1")
	}
	for _, must := range []struct{ flag, value, what string }{
		{"peer-addr", c.PeerAddr, "where the other nodes reach this one"},
		{"route-addr", c.RouteAddr, "where their log servers reach this one's"},
		{"peer-certs", c.Certs, "the folder of certificates that memctl cluster certs makes"},
		{"join", strings.Join(c.Join, ","), "peer addresses of the nodes"},
	} {
		if must.value == "" && !(outside && must.flag == "route-addr") {
			return usage(fmt.Sprintf("--%s is missing: a node of a cluster needs it", must.flag), "--"+must.flag+" names "+must.what)
		}
	}
	if c.PeerAddr == c.RouteAddr || c.peer() == c.route() {
		return usage("the peer port and the log server's routes have one address", "give --peer-addr and --route-addr a port each, and --peer-advertise and --route-advertise too")
	}
	listens, reached := []string{c.PeerAddr, c.RouteAddr}, append([]string{c.peer(), c.route()}, c.Join...)
	if outside {
		listens, reached = listens[:1], append([]string{c.peer()}, c.Join...)
	}
	for _, addr := range listens {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" || port == "0" {
			return usage(fmt.Sprintf("address %q is not host:port", addr), "give the address to listen on and a port, as in 10.0.0.1:8800")
		}
	}
	for _, addr := range reached {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" || port == "" || port == "0" {
			return usage(fmt.Sprintf("address %q is not host:port", addr), "the others must be able to use it as it is given, as in 10.0.0.1:8800")
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			return usage(fmt.Sprintf("address %q says everywhere, and the others cannot go there", addr),
				"give the name or address by which they reach this node; to listen everywhere, name it by --peer-advertise and --route-advertise")
		}
	}
	switch {
	case c.Expect < 0 || c.Expect > 5:
		return usage(fmt.Sprintf("a cluster of %d nodes is not supported", c.Expect), "--bootstrap-expect takes 3 or 5; 4 works too, and bears no more losses than 3")
	case c.Expect == 1: // the log's servers elect nobody where one is alone
		return usage("one node is no cluster", "start it without the options of a cluster, or found one with --bootstrap-expect 3 or 5")
	case c.Expect == 2 && !c.AllowTwo:
		return usage("a cluster of two nodes stops writing when either of them is gone: it is less available than a node on its own",
			"--bootstrap-expect takes 3 or 5; --allow-two founds one of two all the same, which keeps everything twice")
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Kinds of StartError.
const (
	StartUsage       = "usage"
	StartReadOnly    = "readonly"
	StartInUse       = "in_use"
	StartAddress     = "address_taken"
	StartUnreachable = "unreachable"
	StartDamaged     = "damaged"
	StartNewer       = "newer"
	StartLostKey     = "lost_key"
	StartOther       = "other"
)

// StartError says why a node did not start, for people.
type StartError struct {
	Kind    string
	Message string
	Hint    string
	Addr    string   // of StartAddress
	Try     []string // flags with which the same command starts; mostly nil
	Err     error

	alone bool // the hint is for a node on its own: one of several is replaced
}

func (e *StartError) Error() string { return e.Message }
func (e *StartError) Unwrap() error { return e.Err }

func usage(message, hint string) *StartError {
	return &StartError{Kind: StartUsage, Message: message, Hint: hint}
}

// startError gives a failure while starting its kind and words.
func startError(what string, err error) error {
	var known *StartError
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &StartError{Kind: StartOther, Message: fmt.Sprintf("%s: %v", what, err), Err: err}
	var addr *eventlog.AddressError
	var gap *eventlog.GapError
	var unusable *replica.DamagedError
	var lost *ingest.LostKeysError
	switch {
	case errors.As(err, &lost):
		e.Kind, e.Hint = StartLostKey, "keys/ is an older copy or another node's; put the data directory's keys/ folder back as this node had it last, or memctl restore backups of log and keys into a new directory"
	case errors.As(err, &unusable):
		e.Kind, e.Message, e.Hint = StartDamaged, unusable.Message, unusable.Hint
	case errors.As(err, &gap):
		e.alone = true
		e.Kind, e.Message = StartDamaged, fmt.Sprintf("%s: the log is damaged and there is no state to repair it from: %v", what, gap)
		e.Hint = "memctl restore brings a backup back into a new directory; if shards/ can be put back from a copy, memctl log repair --data-dir DIR mends the log from it"
	case errors.As(err, &addr):
		e.Kind, e.Addr, e.Message = StartAddress, addr.Addr, fmt.Sprintf("address %s is taken", addr.Addr)
	case errors.Is(err, syscall.EADDRINUSE):
		e.Kind = StartAddress
	case errors.Is(err, eventlog.ErrUnreachable), errors.Is(err, eventlog.ErrNoSyncProof):
		e.Kind = StartUnreachable
	case errors.Is(err, storage.ErrInUse), errors.Is(err, raftfsm.ErrLocked):
		e.Kind = StartInUse
	case errors.Is(err, storage.ErrNewerFormat), errors.Is(err, events.ErrNewer), errors.Is(err, keyring.ErrNewerFormat):
		e.Kind, e.Hint = StartNewer, "start the version of Mneme that wrote it, or a newer one"
	case errors.Is(err, events.ErrOlder), errors.Is(err, keyring.ErrOlderFormat):
		e.Kind, e.Hint = StartNewer, "export the memories with the version of Mneme that wrote them and import them into a new data directory"
	case errors.Is(err, keyring.ErrStorageKeysLost):
		e.Kind = StartLostKey
		e.Hint = "put keys/storage.keys and keys/storage.keys.copy of this node and of the same day as shards/ back, or move both files and shards/ out of the data directory: the state is built again from the log"
	case errors.Is(err, keyring.ErrMode):
		e.Kind, e.Hint = StartUsage, "chmod 600 that file, or 700 the folder; if somebody may have read a key, make a new node and import into it what this one exports"
	case errors.Is(err, keyring.ErrMasterSource):
		e.Kind = StartLostKey
		e.Hint = "the file, variable or command of --master-key (MNEME_MASTER_KEY for memctl) must give the key: 32 bytes as 64 hexadecimal digits, or the line of a master.key file"
	case errors.Is(err, keyring.ErrMasterKeyLost):
		e.Kind = StartLostKey
		e.Hint = "put keys/master.key back, from a copy of the folder or out of what memctl restore makes of any backup whose keys hold it, or name the key's source with memnode --master-key, or MNEME_MASTER_KEY for memctl; without it nothing can be read"
	case errors.Is(err, keyring.ErrNodeSecretLost):
		e.Kind = StartLostKey
		e.Hint = "put keys/node.secret or keys/node.secret.copy back from a backup of the folder, or memctl restore the backups of log and keys into a new one"
	case errors.Is(err, keyring.ErrNoKey), errors.Is(err, keyring.ErrNoKeyring):
		e.Kind, e.Hint = StartLostKey, "put the data directory's keys/ folder back from a backup; without it nothing can be read"
	case errors.Is(err, eventlog.ErrStoreDamaged):
		e.alone = true
		e.Kind, e.Hint = StartDamaged, "nothing is lost while shards/ is whole: move nats/ aside and run memctl log repair --data-dir DIR, which writes the log again from the state"
	case errors.Is(err, storage.ErrMissingKey):
		e.Kind = StartLostKey
		e.Hint = "put keys/node.secret and keys/storage.keys of the same day as shards/ back, or move shards/ out of the data directory: the state is built again from the log"
	case errors.Is(err, eventlog.ErrOtherCluster), errors.Is(err, raftfsm.ErrOtherNode):
		e.Kind, e.Hint = StartDamaged, "keys/, shards/, nats/ and node.json belong together: put the four of the same node into the data directory"
	case errors.Is(err, keyring.ErrDamaged), storage.IsCorrupt(err),
		errors.Is(err, raftfsm.ErrDamaged), errors.Is(err, raftfsm.ErrCorruptLog), errors.Is(err, raftfsm.ErrCorruptSnapshot),
		errors.Is(err, raftfsm.ErrStateLost):
		e.Kind, e.Hint, e.alone = StartDamaged, "memctl doctor --data-dir DIR says more; memctl restore brings a backup back", true
	case storage.IsNoSpace(err):
		e.Hint = "free some space on that disk and start again; nothing is lost"
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		e.Kind, e.Hint = StartReadOnly, "choose a directory that this user may write to"
	}
	return e
}

// ofSeveral gives the damage of a node of several its own remedy: the others have what it had,
// and what mends a node on its own is refused for its data directory.
func (c *Config) ofSeveral(err error) error {
	var e *StartError
	if c.Cluster != nil && errors.As(err, &e) && e.alone {
		e.Hint = fmt.Sprintf("replace this node: the others have all that was acknowledged. Keep its data directory until that is done, run memctl cluster remove %s at another node, and start this one with an empty directory; "+
			"on Kubernetes delete its claim and its pod. The page nodes.md of docs/operate says how, under \"Replace a node\"", c.Cluster.NodeID)
	}
	return err
}
