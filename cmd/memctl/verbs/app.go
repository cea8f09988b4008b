package verbs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// app is one run of memctl: the world, the flags every verb takes, and what is
// opened on demand.
type app struct {
	sys    system
	in     *bufio.Reader
	out    *bufio.Writer
	flags  globalFlags
	reach  client.Dial    // the node, where a verb may have one started; nil = as the address says
	client *client.Client // nil until dial

	operator *client.Client // nil until dialOperator; may be client itself
}

// globalFlags are the flags of every verb.
type globalFlags struct {
	json, quiet                    bool
	addr, tokenFile, namespace, as string
	tlsCA, tlsCert, tlsKey         string
	connectTimeout                 time.Duration
	dataDir                        string // of the verbs that work on a stopped node
}

func newApp(ctx context.Context, sys system) *app {
	return &app{
		sys: sys,
		in:  bufio.NewReader(&ctxReader{ctx: ctx, r: sys.in}),
		out: bufio.NewWriter(sys.out),
	}
}

func (a *app) close() {
	for _, c := range []*client.Client{a.client, a.operator} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// first returns the first value that is not empty.
func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// dial makes the client from flags, environment and what was remembered.
func (a *app) dial() (*client.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	rem, err := a.remembered()
	if err != nil {
		return nil, err
	}
	addr := a.addr(rem)
	token, err := a.token(rem, addr)
	if err != nil {
		return nil, err
	}
	agent, err := a.agent()
	if err != nil {
		return nil, err
	}
	timeout, err := connectTimeout(a.flags.connectTimeout, a.sys.getenv("MNEME_CONNECT_TIMEOUT"))
	if err != nil {
		return nil, err
	}
	reach := a.reach
	if reach == nil {
		reach = a.sys.dialer(addr)
	}
	a.client, err = client.New(addr, client.Options{
		Token:      token,
		CAFile:     first(a.flags.tlsCA, a.sys.getenv("MNEME_TLS_CA"), rem.TLSCA),
		CertFile:   first(a.flags.tlsCert, a.sys.getenv("MNEME_TLS_CLIENT_CERT"), rem.TLSCert),
		KeyFile:    first(a.flags.tlsKey, a.sys.getenv("MNEME_TLS_CLIENT_KEY"), rem.TLSKey),
		Agent:      agent,
		UserAgent:  "memctl/" + a.sys.version.Version,
		HTTPClient: a.sys.http, ConnectTimeout: timeout,
		DialContext: reach,
	})
	return a.client, err
}

// connectTimeout is for how long a call tries to reach a node.
func connectTimeout(flag time.Duration, variable string) (time.Duration, error) {
	if flag != 0 || variable == "" {
		return flag, nil
	}
	d, err := time.ParseDuration(variable)
	if err != nil || d < 0 {
		return 0, memory.Errorf(memory.CodeInvalid, "MNEME_CONNECT_TIMEOUT is %q, which is no time", variable).WithHint("say it as 30s or 2m")
	}
	return d, nil
}

// addr is where calls go.
func (a *app) addr(rem remembered) string {
	return first(a.flags.addr, a.sys.getenv("MNEME_ADDR"), rem.Addr)
}

const tokenFileHint = "name a file that holds the token of the node and nothing else, as <data-dir>/keys/operator.token of a node on this machine does"

// token is the token that goes to addr: what was given goes where the caller says, what was
// remembered goes nowhere but where it was remembered for. "" is none.
func (a *app) token(rem remembered, addr string) (string, error) {
	path := a.flags.tokenFile
	if path == "" {
		// A Secret that was made of a token file ends in a new line, as the file does.
		if t := strings.TrimSpace(a.sys.getenv("MNEME_TOKEN")); t != "" {
			return t, nil
		}
		fits, err := rem.tokenFits(addr)
		if err != nil || !fits {
			return "", err
		}
		path = rem.TokenFile
	}
	if path == "" {
		return "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", memory.Errorf(memory.CodeInvalid, "read token: %w", err).WithHint(tokenFileHint)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return "", memory.Errorf(memory.CodeInvalid, "token file %s does not hold one token", path).WithHint(tokenFileHint)
	}
	return token, nil
}

func (a *app) tokenGiven() bool { return a.flags.tokenFile != "" || a.sys.getenv("MNEME_TOKEN") != "" }

// tokenElsewhere says, where no token was sent, that one is remembered for other addresses,
// and what to do; "" where that is not so.
func (a *app) tokenElsewhere() string {
	rem, err := a.remembered()
	if err != nil || a.tokenGiven() || rem.TokenFile == "" {
		return ""
	}
	addr := a.addr(rem)
	if fits, err := rem.tokenFits(addr); err != nil || fits {
		return ""
	}
	to, _ := wholeAddr(addr) // it was good above
	return fmt.Sprintf("%s was remembered for %s and is not sent to %s: give --token-file FILE or set MNEME_TOKEN; `memctl use --addr %[3]s --token-file FILE` remembers a token for that address", rem.TokenFile, rem.tokenFor(), to)
}

// tokenFound is the operator token's file of a node on this machine, in the data directory
// that it has unless it was told otherwise; "" if there is none, or a token was given. It is
// named and not used: who listens at an address need not be that node.
func (a *app) tokenFound() string {
	if rem, err := a.remembered(); err != nil || a.tokenGiven() || rem.TokenFile != "" {
		return ""
	}
	dir := first(a.flags.dataDir, a.sys.getenv("MNEME_DATA_DIR"))
	if dir == "" && a.sys.home != nil {
		if home, err := a.sys.home(); err == nil {
			dir = filepath.Join(home, ".mneme")
		}
	}
	file := filepath.Join(dir, "keys", "operator.token")
	if info, err := os.Stat(file); dir == "" || err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}

// named returns what names the namespace to work in; there is no "all".
func (a *app) named() (string, error) {
	ns, _, err := namespaceIn(a, "")
	return ns, errOr(err, ns)
}

// errOr is err, or what is wrong with no name at all.
func errOr(err error, ns string) error {
	if err != nil || ns != "" {
		return err
	}
	return memory.Errorf(memory.CodeInvalid, "no namespace was named").
		WithHint("give -n NAMESPACE, or remember one with `memctl use NAMESPACE`, in a project for that one with `memctl project use NAMESPACE`; `memctl namespace list` shows them")
}

// namespace returns the namespace to work in.
func (a *app) namespace() (string, error) {
	ns, err := a.named()
	if err != nil {
		return "", err
	}
	if bad := memory.CheckName("namespace", ns); bad != nil {
		return "", bad
	}
	return ns, nil
}

// agent returns who is acting, or "" if nobody was named.
func (a *app) agent() (string, error) {
	rem, err := a.remembered()
	if err != nil {
		return "", err
	}
	as := first(a.flags.as, a.sys.getenv("MNEME_AGENT"), rem.Agent)
	if as == "" {
		return "", nil
	}
	if bad := memory.CheckName("agent", as); bad != nil {
		return "", bad
	}
	return as, nil
}

// author is agent for captures, which cannot do without one: the operating
// system's user, else "cli".
func (a *app) author() (string, error) {
	as, err := a.agent()
	if err != nil || as != "" {
		return as, err
	}
	name := a.sys.userName()
	if i := strings.LastIndexByte(name, '\\'); i >= 0 { // DOMAIN\name
		name = name[i+1:]
	}
	return first(importer.MakeName(name), "cli"), nil
}

// dialOperator is dial for the verbs of the operator.
func (a *app) dialOperator(ctx context.Context) (*client.Client, error) {
	c, err := a.dial()
	if err != nil || a.operator != nil {
		return a.operator, err
	}
	a.operator, err = c.Operator(ctx)
	return a.operator, err
}

// connect is what most verbs begin with.
func (a *app) connect() (*client.Client, string, error) {
	ns, err := a.namespace()
	if err != nil {
		return nil, "", err
	}
	c, err := a.dial()
	return c, ns, err
}

// textArg returns the words of args as one text, or standard input for "-".
func (a *app) textArg(args []string) (string, error) {
	if len(args) != 1 || args[0] != "-" {
		return strings.Join(args, " "), nil
	}
	b, err := io.ReadAll(io.LimitReader(a.in, memory.MaxTextBytes+2))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	text := strings.TrimRight(string(b), "\r\n")
	if len(text) > memory.MaxTextBytes { // how much more there is was not read
		return "", memory.Errorf(memory.CodeTooLarge, "the text has more than %d bytes", memory.MaxTextBytes).
			WithHint("split it into several memories that share a conversation or a tag")
	}
	return text, nil
}
