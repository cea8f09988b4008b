package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"mneme/internal/testaddr"
)

// runbooks are the pages of docs/operate that can be walked in seconds, from their first line to
// their last. What a page does not print, such as causing the fault, stands in a comment:
//
//	<!-- walk
//	rm keys/master.key
//	-->
//
// A block of sh is run as it stands, and stops the walk where a command fails; `# exit 7` behind
// one says with what it ends. The block without a language that follows one is what it prints:
// each of its lines, in which … stands for anything. Blocks for Kubernetes or systemd are passed
// over.
var runbooks = []string{"full-disk", "expired-certificates", "lost-master-key", "nodes", "noisy-namespace", "secure"}

// places of the pages, below the folder that they are walked in.
var runbookPlaces = strings.NewReplacer("/var/lib/mneme", "$WALK/lib/mneme", "/var/backups/mneme", "$WALK/backups", "/srv/safe/mneme", "$WALK/safe", "/etc/mneme", "$WALK/etc", "127.0.0.1:8787", "$HTTP")

// runbookStart is what every walk has: nodes whose end is waited for, on loopback.
const runbookStart = `
set -e
cd "$WALK"
mkdir -p etc lib
trap 'set +e; for p in $(jobs -p); do kill -9 $p; done 2>/dev/null; wait' EXIT
await() {  # await WHAT...: until a command succeeds
  for i in $(seq 300); do if "$@" > /dev/null 2>&1; then return 0; fi; sleep 0.1; done
  echo "in vain: $*"; return 1
}
start() {  # start NAME FLAGS...: a node, and wait until it is ready
  local name=$1; shift
  memnode "$@" > $name.out 2> $name.log &
  eval "pid_$name=$!"
  await grep -q '^memnode ready' $name.out || { cat $name.log; return 1; }
}
end() {  # end NAME: a node
  local pid=pid_$1; kill ${!pid}; wait ${!pid}
}
expire() {  # expire CERT CA...: have a certificate of the authority CA.crt end a minute ago
  ` + expireVariable + `=1 "$SELF" "$1" "$2.crt" "$2.key"
}
rot() {  # rot DIRECTORY PERCENT: flip two bits of a node's copy of the log, so far behind its beginning
  local file=$(ls -S $1/nats/jetstream/*/streams/*/msgs/*.blk | head -n 1)
  local at=$(($(wc -c < $file) * $2 / 100)) k b
  for k in $at $((at + 8)); do
    b=$(od -An -tu1 -j$k -N1 $file)
    printf "$(printf '\\%03o' $((b ^ 1)))" | dd of=$file bs=1 seek=$k conv=notrunc 2> /dev/null
  done
}
export MNEME_ADDR=http://$HTTP
ONE="--http-addr $HTTP --nats-addr $NATS"
# As docs/cluster.md has them, with ports of the walk's own.
node() {
  exec memnode --node-id n$1 --data-dir "$PWD/n$1" --peer-certs certs --bootstrap-expect 3 \
    --http-addr 127.0.0.1:${PORTS[$1]} --nats-addr 127.0.0.1:${PORTS[3+$1]} \
    --peer-addr 127.0.0.1:${PORTS[6+$1]} --route-addr 127.0.0.1:${PORTS[9+$1]} \
    --join 127.0.0.1:${PORTS[7]},127.0.0.1:${PORTS[8]},127.0.0.1:${PORTS[9]}
}
stop() {
  pkill ${2:--TERM} -f "data-dir $PWD/n$1 "
  while pgrep -f "data-dir $PWD/n$1 " > /dev/null; do sleep 0.1; done
}
three() {  # three nodes, and wait for them
  local i
  memctl cluster certs --out certs n1 n2 n3 > /dev/null
  for i in 1 2 3; do node $i > n$i.out 2> n$i.log & done
  for i in 1 2 3; do await grep -q '^memnode ready' n$i.out; done
  export MNEME_ADDR=http://127.0.0.1:${PORTS[1]},http://127.0.0.1:${PORTS[2]},http://127.0.0.1:${PORTS[3]}
}
whole() {  # whole N: so many nodes are up to date, each with a copy of the log
  await sh -c "test \$(memctl cluster status | grep -c 'up to date\$') = $1"
}
`

// expireVariable has this test program sign a certificate again, so that it has ended.
const expireVariable = "MNEME_E2E_EXPIRE"

func expireMain(args []string) int {
	err := func() error {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}
		block, _ := pem.Decode(text)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		ca, err := tls.LoadX509KeyPair(args[1], args[2])
		if err != nil {
			return err
		}
		cert.NotAfter = time.Now().Add(-time.Minute)
		cert.NotBefore = cert.NotAfter.Add(-time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, cert, ca.Leaf, cert.PublicKey, ca.PrivateKey)
		if err != nil {
			return err
		}
		return os.WriteFile(args[0], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestRunbooks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the runbooks are for a shell of Unix")
	}
	for _, name := range runbooks {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait more than they work
			walkRunbook(t, name)
		})
	}
}

func walkRunbook(t *testing.T, name string) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	if name == "full-disk" {
		if err := os.Mkdir(filepath.Join(work, "lib"), 0o700); err != nil {
			t.Fatal(err)
		}
		smallDisk(t, filepath.Join(work, "lib"), "320m")
	}
	steps := runbookSteps(string(text))
	addrs := testaddr.Reserve(t, 14)
	script := "PORTS=(0"
	for _, a := range addrs[2:] {
		script += " " + strings.TrimPrefix(a, "127.0.0.1:")
	}
	script += ")\n" + runbookStart
	for i, s := range steps {
		script += fmt.Sprintf("echo '@@@ %d'\n%s\n", i, s.commands)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-c", script)
	bash.Env = environment(work, "WALK="+work, "HTTP="+addrs[0], "NATS="+addrs[1], "SELF="+os.Args[0])
	for i, kv := range bash.Env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			bash.Env[i] = "PATH=" + filepath.Dir(built.memnode) + ":" + path
		}
	}
	out, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, s := range steps {
		_, printed, _ := strings.Cut(string(out), fmt.Sprintf("@@@ %d\n", i))
		printed, _, _ = strings.Cut(printed, fmt.Sprintf("@@@ %d\n", i+1))
		for _, line := range s.prints {
			if !printedLine(printed, line) {
				t.Errorf("%q is not printed by\n%s\nbut\n%s", line, s.commands, printed)
			}
		}
	}
}

// step is a block of commands, and lines of what it prints.
type step struct {
	commands string
	prints   []string
}

var (
	runbookBlock = regexp.MustCompile("(?s)<!-- walk\n(.*?)-->|```(\\w*)\n(.*?)```")
	elsewhere    = regexp.MustCompile(`\b(kubectl|systemctl|journalctl|sudo)\b`)
	exits        = regexp.MustCompile(`^(.*\S)\s+# exit (\d+)$`)
)

func runbookSteps(text string) (steps []step) {
	shown := false // the last block is one whose output may follow
	for _, m := range runbookBlock.FindAllStringSubmatch(text, -1) {
		switch hidden, language, body := m[1], m[2], m[3]; {
		case hidden != "":
			steps, shown = append(steps, step{commands: hidden}), false
		case language == "sh" && !elsewhere.MatchString(body):
			steps, shown = append(steps, step{commands: runbookCommands(body)}), true
		case language == "" && shown:
			steps[len(steps)-1].prints = strings.Split(strings.TrimSpace(body), "\n")
			shown = false
		default:
			shown = false
		}
	}
	return steps
}

// runbookCommands puts the walk's places into commands, and takes the exit codes that are told.
func runbookCommands(body string) string {
	var out strings.Builder
	for line := range strings.Lines(runbookPlaces.Replace(body)) {
		line = strings.TrimRight(line, "\n")
		if m := exits.FindStringSubmatch(line); m != nil {
			line = m[1] + " && false || test $? = " + m[2]
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// printedLine reports whether a line was printed, in which … stands for anything.
func printedLine(printed, line string) bool {
	parts := strings.Split(strings.TrimSpace(line), "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(strings.Join(strings.Fields(p), " "))
		parts[i] = strings.ReplaceAll(parts[i], " ", `\s+`)
	}
	return regexp.MustCompile(strings.Join(parts, ".*")).MatchString(printed)
}

func TestRunbookSteps(t *testing.T) {
	got := runbookSteps("a\n```sh\nls /var/lib/mneme\nfalse   # exit 1\n```\n\n```\none … two\n```\n<!-- walk\nhidden\n-->\n```sh\nkubectl get\n```\n```\nno\n```\n")
	if len(got) != 2 || got[0].commands != "ls $WALK/lib/mneme\nfalse && false || test $? = 1\n" || strconv.Itoa(len(got[0].prints)) != "1" || got[1].commands != "hidden\n" {
		t.Errorf("%+v", got)
	}
	if !printedLine("x\none  and two\n", "one … two") || printedLine("one\ntwo\n", "one … two") {
		t.Error("lines are told apart wrongly")
	}
}
