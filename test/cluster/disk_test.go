package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"mneme/memory"
)

// victim is a node by chance, the leader as often as not.
func (f *fault) victim() *process {
	if f.random.IntN(2) == 0 {
		return f.lead
	}
	return f.follower()
}

// jumped has one node's clock be wrong for a while: a little, by more than the log allows,
// or by so much that it is plainly wrong.
func (f *fault) jumped(ctx context.Context) string {
	p := f.victim()
	by := []time.Duration{40 * time.Second, -40 * time.Second, -10 * time.Minute, 3 * time.Hour}[f.random.IntN(4)]
	ahead, _ := p.disturb(ctx, disturbance{clock: by})
	f.last(ctx)
	p.disturb(ctx, disturbance{})
	if d := ahead - by; d < -2*time.Second || d > 2*time.Second {
		return ""
	}
	return fmt.Sprintf("the clock of %s was ahead by %v", f.called(p), ahead)
}

// called is a node's id, and whether it led.
func (f *fault) called(p *process) string {
	if p == f.lead {
		return p.id + ", which led,"
	}
	return p.id
}

// slowDisk has each sync of one node take longer, from hardly to seconds.
func (f *fault) slowDisk(ctx context.Context) string {
	p := f.victim()
	by := []time.Duration{5, 30, 200, 3000}[f.random.IntN(4)] * time.Millisecond
	_, before := p.disturb(ctx, disturbance{sync: by})
	f.last(ctx)
	_, delayed := p.disturb(ctx, disturbance{})
	if delayed == before {
		return ""
	}
	return fmt.Sprintf("%d syncs of %s took %v longer", delayed-before, f.called(p), by)
}

// older puts an older copy of its data directory under a node, which must notice.
func (f *fault) older(ctx context.Context) string {
	p := f.follower()
	p.term()
	older := p.copyOf()
	defer os.RemoveAll(older)
	p.begin()
	p.ready(ctx)
	pause(ctx, 3*time.Second) // who takes part is remembered every two
	f.last(ctx)
	p.kill()
	p.put(older)
	said := len(p.out.String())
	p.begin()
	p.ready(ctx)
	p.voter(ctx, f.tm.without(p)[0])
	if !strings.Contains(p.out.String()[said:], "this data directory is older than what ") {
		return ""
	}
	return p.id + " came back with an older copy, and joined anew"
}

// kindsOfFiles are what a node keeps, by what would be read from it.
var kindsOfFiles = []struct {
	name string
	dirs []string // patterns
	is   func(path string) bool
}{
	{"the log's blocks", []string{"nats/jetstream/NODE"}, func(path string) bool { return strings.HasSuffix(path, ".blk") }},
	{"the log's other files", []string{"nats/jetstream/NODE"}, func(path string) bool { return !strings.HasSuffix(path, ".blk") }},
	{"the Raft logs of NATS", []string{"nats/jetstream/SYS/_js_"}, func(path string) bool { return strings.HasSuffix(path, ".blk") }},
	{"the other Raft files of NATS", []string{"nats/jetstream/SYS/_js_"}, func(path string) bool { return !strings.HasSuffix(path, ".blk") }},
	{"raft.db", []string{"shards/*", "keys/raft"}, func(path string) bool { return strings.HasSuffix(path, "raft.db") }},
	{"the state's tables", []string{"shards/*/state"}, func(path string) bool { return strings.HasSuffix(path, ".sst") }},
	{"the state's other files", []string{"shards/*/state"}, func(path string) bool { return !strings.HasSuffix(path, ".sst") }},
	{"snapshots", []string{"shards/*/snapshots", "keys/raft/snapshots"}, func(string) bool { return true }},
	{"keys", []string{"keys"}, func(path string) bool { return !strings.Contains(filepath.ToSlash(path), "/keys/raft/") }},
}

// flips are the nemeses that flip a bit of each kind of file.
func flips() (out []nemesis) {
	for _, kind := range kindsOfFiles {
		n := nemesis{name: "flip a bit of " + kind.name, does: func(ctx context.Context, f *fault) string {
			return f.flipped(ctx, kind.dirs, kind.is)
		}}
		if strings.HasPrefix(kind.dirs[0], "nats/") {
			n.cannot = notOwnLog
		}
		out = append(out, n)
	}
	return out
}

// rotted flips a bit of a node's copy of the log while it runs. The node finds it when it is asked
// to read its copy, and takes it from the others by itself: it comes back under another name.
func (f *fault) rotted(ctx context.Context) string {
	p := f.victim()
	var blocks []string
	for _, pattern := range []string{"nats/jetstream/NODE/streams/*/msgs/*.blk", "nats/jetstream/SYS/_js_/*/msgs/*.blk"} {
		some, _ := filepath.Glob(filepath.Join(p.dir, filepath.FromSlash(pattern))) // the patterns are right
		blocks = append(blocks, slices.DeleteFunc(some, func(path string) bool {
			info, err := os.Stat(path)
			return err != nil || info.Size() < 16<<10 // so much that something sound follows the middle
		})...)
	}
	if len(blocks) == 0 {
		return ""
	}
	path := blocks[f.random.IntN(len(blocks))]
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	must(f.tm.t, err)
	defer file.Close()
	info, err := file.Stat()
	must(f.tm.t, err)
	at, b := f.random.Int64N(info.Size()/2), make([]byte, 1)
	_, err = file.ReadAt(b, at)
	must(f.tm.t, err)
	_, err = file.WriteAt([]byte{b[0] ^ 1<<f.random.IntN(8)}, at)
	must(f.tm.t, err)
	rel, _ := filepath.Rel(p.dir, path)
	bit := fmt.Sprintf("byte %d of %s of %s rotted while it ran", at, rel, f.called(p))
	f.tm.t.Log(bit) // if it never comes back
	said := len(p.out.String())
	began := time.Now()
	for !strings.Contains(p.out.String()[said:], "joins again with nothing") {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !strings.Contains(rel, "streams") {
			return bit + ", and its server removed the file" // of what is agreed on it keeps the end
		}
		if ctx.Err() != nil {
			f.tm.t.Fatalf("%s: nobody found it: %v\n%s", bit, ctx.Err(), p.out.String()[said:])
		}
		try, cancel := context.WithTimeout(ctx, 2*attempt)
		_, _ = p.verifies(try) // it may be starting again, or have found the log damaged, which asks for the same
		cancel()
		pause(ctx, 200*time.Millisecond)
	}
	p.ready(ctx)
	p.voter(ctx, f.tm.without(p)[0])
	return fmt.Sprintf("%s, and its copy came from the others after %v", bit, time.Since(began).Round(time.Millisecond))
}

// flipped stops a node, flips one bit of one of its files, and starts it again. It heals,
// joins anew, or refuses with 7 and a remedy, which then is carried out.
func (f *fault) flipped(ctx context.Context, dirs []string, is func(path string) bool) string {
	p := f.victim()
	how := "ended"
	if f.random.IntN(2) == 0 {
		how = "was killed"
		p.kill()
	} else {
		p.term()
	}
	what := flipIn(f.random, p.dir, dirs, is)
	if what == "" {
		return ""
	}
	bit := fmt.Sprintf("%s %s, %s was flipped", f.called(p), how, what)
	f.tm.t.Log(bit) // if it never comes back
	said := len(p.out.String())
	p.begin()
	code, ended := p.readyOr(ctx)
	if !ended {
		p.voter(ctx, f.tm.without(p)[0])
		for _, line := range strings.Split(p.out.String()[said:], "\n") {
			if healing.MatchString(line) {
				bit += "\n\t" + line
			}
		}
		return bit
	}
	printed := strings.TrimSpace(p.out.String()[said:])
	bit += fmt.Sprintf("; it refused with %d:\n\t%s", code, strings.ReplaceAll(printed, "\n", "\n\t"))
	p.cmd = nil
	switch token := filepath.Join(p.dir, "keys", "operator.token"); {
	case code == 2 && strings.Contains(printed, "is not the one that the cluster has"): // it is what an operator may have written there
		must(f.tm.t, os.Remove(token))
		p.begin()
		p.ready(ctx)
		p.voter(ctx, f.tm.without(p)[0])
		return bit + "\n\tit took the token from the others"
	case code == 7:
		return bit + "\n\t" + f.replace(ctx, p)
	}
	f.tm.t.Errorf("%s\nmust end with 7 or go on", bit)
	return bit
}

// healing is what a node says that found damage, or NATS in it.
var healing = regexp.MustCompile(`(?i)level=(WARN|ERROR).*(damage|corrupt|checksum|built again|join.* again|lies aside|from its copy|healed|storage key)`)

// readyOr waits until the node serves, or has ended by itself.
func (p *process) readyOr(ctx context.Context) (code int, ended bool) {
	p.team.t.Helper()
	for {
		if _, err := p.client.Status(ctx); err == nil {
			return 0, false
		}
		select {
		case <-p.exited:
			return p.cmd.ProcessState.ExitCode(), true
		case <-ctx.Done():
			p.team.t.Fatalf("%s was not ready: %v\n%s", p.id, ctx.Err(), p.out)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// flipIn flips a bit of a file below some folders, where something is written, and says
// which; "" if there is none.
func flipIn(random *rand.Rand, root string, dirs []string, is func(path string) bool) string {
	var files []string
	var found []string
	for _, dir := range dirs {
		some, _ := filepath.Glob(filepath.Join(root, dir)) // the patterns are right
		found = append(found, some...)
	}
	for _, dir := range found {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && is(path) {
				if info, err := d.Info(); err == nil && info.Size() > 0 {
					files = append(files, path)
				}
			}
			return nil // a folder may be missing
		})
	}
	if len(files) == 0 {
		return ""
	}
	slices.Sort(files)
	path := files[random.IntN(len(files))]
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	at := random.IntN(len(b))
	for range 100 { // most of some files was never written
		if b[at] != 0 {
			break
		}
		at = random.IntN(len(b))
	}
	bit := random.IntN(8)
	b[at] ^= 1 << bit
	if os.WriteFile(path, b, 0o600) != nil {
		return ""
	}
	rel, _ := filepath.Rel(root, path)
	return fmt.Sprintf("bit %d of byte %d of %s, which has %d,", bit, at, rel, len(b))
}

// diskSize is the small disk of a node that gets a full one. Half of it would do for the
// load; writes end where a quarter of a gigabyte is left.
const diskSize = 640 << 20

// asRoot says why there are no small disks, "" if there are.
func asRoot(*team) string {
	if os.Geteuid() != 0 {
		return "needs root, to mount a small disk"
	}
	return ""
}

// full moves a node to a small disk and fills that to the last byte, at once or slowly;
// then there is room again.
func (f *fault) full(ctx context.Context) (bit string) {
	p := f.victim()
	t, home, disk := f.tm.t, p.dir, p.dir+".disk"
	p.term()
	must(t, os.MkdirAll(disk, 0o700))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", diskSize)); err != nil {
		t.Errorf("mount a small disk: %v", err)
		return ""
	}
	// A data directory is a folder of a disk.
	p.dir = filepath.Join(disk, "data")
	mounted := true
	umount := func() error {
		if !mounted {
			return nil
		}
		mounted = false
		return syscall.Unmount(disk, 0)
	}
	t.Cleanup(func() { // if this fails
		p.kill()
		_ = umount()
	})
	must(t, os.CopyFS(p.dir, os.DirFS(home)))
	closed(t, p.dir)
	p.begin()
	p.ready(ctx)
	pause(ctx, time.Second)
	if f.random.IntN(2) == 0 {
		f.tm.transfer(ctx, p)
	}
	lead, _ := f.tm.led(ctx, f.shard, nil)
	ballast, err := os.Create(filepath.Join(disk, "ballast"))
	must(t, err)
	defer ballast.Close()
	slow := f.random.IntN(2) == 0
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = ballast.Write(chunk)
		if slow {
			pause(ctx, 5*time.Millisecond)
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("fill the small disk: %v", err)
		return ""
	}
	f.last(ctx)
	must(t, os.WriteFile(filepath.Join(disk, "probe"), nil, 0o600))
	if err := os.WriteFile(filepath.Join(disk, "probe"), make([]byte, 64<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		return "" // somebody made room
	}
	bit = fmt.Sprintf("the disk of %s was full (it led: %t)", p.id, p == lead)
	select {
	case <-p.exited:
		bit += fmt.Sprintf(", and the node ended: %s", p.cmd.ProcessState)
	default:
	}
	must(t, os.Remove(filepath.Join(disk, "ballast")))
	must(t, ballast.Close())
	must(t, os.Remove(filepath.Join(disk, "probe")))
	select {
	case <-p.exited:
		p.begin()
		p.ready(ctx)
	default:
	}
	if !p.whole(ctx, f.tm.without(p)[0], 20*time.Second) { // "restart the node" is what it says then
		bit += ", and had to be started again"
		p.term()
		p.begin()
		p.ready(ctx)
		p.voter(ctx, f.tm.without(p)[0])
	}
	p.term()
	must(t, os.RemoveAll(home))
	must(t, os.CopyFS(home, os.DirFS(p.dir)))
	closed(t, home)
	must(t, umount())
	p.dir = home
	p.begin()
	p.ready(ctx)
	return bit
}

// transfer has a node lead, as an operator does.
func (tm *team) transfer(ctx context.Context, p *process) {
	tm.t.Helper()
	for {
		operator, err := p.operator(ctx)
		if err == nil {
			_, err = operator.Cluster().Transfer(ctx, memory.TransferLead{Node: p.id})
			_ = operator.Close()
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			tm.t.Fatalf("transfer the leadership to %s: %v", p.id, err)
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// whole reports whether a node's copy of the log becomes whole in time.
func (p *process) whole(ctx context.Context, via *process, patient time.Duration) bool {
	until := time.Now().Add(patient)
	for time.Now().Before(until) {
		st, err := via.client.Cluster().Status(ctx)
		if err == nil && len(st.Shards) > 0 {
			whole := 0
			for _, s := range st.Shards {
				for _, r := range s.Replicas {
					if r.Node == p.id && (r.Log.Current || p.team.servers != nil) {
						whole++
					}
				}
			}
			if whole == len(st.Shards) {
				return true
			}
		}
		pause(ctx, 100*time.Millisecond)
	}
	return false
}

// replace removes a node that has ended, with its data, and has it join anew.
func (f *fault) replace(ctx context.Context, p *process) string {
	must(f.tm.t, os.RemoveAll(p.dir))
	removed := f.remove(ctx, p, nil)
	p.begin()
	p.ready(ctx)
	p.voter(ctx, f.tm.without(p)[0])
	return fmt.Sprintf("%v was removed, and %s joined anew", removed, p.id)
}

// remove has a node that has ended removed, asking again as long as it is refused.
// meanwhile, if not nil, happens between two attempts.
func (f *fault) remove(ctx context.Context, p *process, meanwhile func()) []string {
	rest := f.tm.without(p)
	for i := 0; ; i++ {
		other := rest[i%len(rest)]
		var removed memory.NodeRemoval
		try, cancel := context.WithTimeout(ctx, 2*attempt)
		operator, err := other.operator(try)
		if err == nil {
			removed, err = operator.Cluster().Remove(try, memory.RemoveNode{Node: p.id})
			_ = operator.Close()
		}
		cancel()
		if err == nil {
			return removed.Removed
		}
		if memory.CodeOf(err) == memory.CodeNotFound { // an attempt that had no answer did it
			return []string{p.id}
		}
		if ctx.Err() != nil {
			f.tm.t.Fatalf("remove %s: %v", p.id, err)
		}
		if meanwhile != nil {
			meanwhile()
		} else {
			pause(ctx, 200*time.Millisecond)
		}
	}
}
