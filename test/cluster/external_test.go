package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/eventlog"
	"mneme/internal/peer/devca"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// natsServer is the nats-server of the go.mod as a program of its own, built once.
var natsServer = sync.OnceValues(func() (string, error) {
	program, err := memnode() // beside which it lies, and is removed with
	if err != nil {
		return "", err
	}
	program = filepath.Join(filepath.Dir(program), "nats-server")
	out, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build nats-server: %w\n%s", err, out)
	}
	return program, nil
})

// logServer is a server of an external NATS: a process of nats-server with the
// configuration that memctl nats-config prints.
type logServer struct {
	t       testing.TB
	program string
	config  string
	cmd     *exec.Cmd
	out     *output
}

func (s *logServer) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.program, "-c", s.config)
	s.cmd.Env = []string{"MNEME_NATS_NODE_PASSWORD=n", "MNEME_NATS_AGENTS_PASSWORD=a", "MNEME_NATS_SYSTEM_PASSWORD=s", "HOME=" + s.t.TempDir()}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	must(s.t, s.cmd.Start())
}

// kill is SIGKILL; it returns when the process is gone.
func (s *logServer) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()         // the signal says how
	s.cmd = nil
}

// onExternalNATS gives a team that has not started three servers that keep its log.
func (tm *team) onExternalNATS() (servers []*logServer) {
	tm.t.Helper()
	program, err := natsServer()
	must(tm.t, err)
	dir, free := tm.t.TempDir(), testaddr.Reserve(tm.t, 9)
	names, routes := []string{"log-1", "log-2", "log-3"}, []string{free[2], free[5], free[8]}
	_, err = devca.Make(devca.Options{Dir: dir, Nodes: names, Hosts: []string{"127.0.0.1"}, Valid: time.Hour})
	must(tm.t, err)
	var urls, monitors []string
	for i, name := range names {
		s := &logServer{t: tm.t, program: program, config: filepath.Join(dir, name+".conf"), out: &output{}}
		config := eventlog.ExternalConfig(eventlog.ExternalServer{Name: name, Listen: free[3*i], Monitor: free[3*i+1], Store: filepath.Join(dir, name),
			Routes: routes, RouteListen: routes[i], Certs: dir})
		must(tm.t, os.WriteFile(s.config, []byte(config), 0o600))
		urls, monitors = append(urls, "nats://mneme-node:n@"+free[3*i]), append(monitors, "http://"+free[3*i+1])
		servers = append(servers, s)
		s.start()
	}
	tm.t.Cleanup(func() {
		for i, s := range servers {
			s.kill()
			if tm.t.Failed() {
				tm.t.Logf("%s printed:\n%s", names[i], s.out)
			}
		}
	})
	for i, p := range tm.nodes {
		p.addrs.route = ""
		p.addrs.agents = "nats://mneme-agents:a@" + free[3*(i%len(names))]
		p.args = append(p.args, "--nats-url", strings.Join(urls, ","), "--nats-monitor", strings.Join(monitors, ","))
	}
	tm.servers = servers
	return servers
}

// serverKilled kills one of the servers of an external NATS, and starts it again.
func (f *fault) serverKilled(ctx context.Context) string {
	i := f.random.IntN(len(f.tm.servers))
	s := f.tm.servers[i]
	pid := s.cmd.Process.Pid
	s.kill()
	f.last(ctx)
	s.start()
	if s.cmd.Process.Pid == pid {
		return ""
	}
	return fmt.Sprintf("log server %d was killed", i+1)
}

// serversKilled kills all of them, and starts them again.
func (f *fault) serversKilled(ctx context.Context) string {
	for _, s := range f.tm.servers {
		s.kill()
	}
	f.last(ctx)
	for _, s := range f.tm.servers {
		s.start()
	}
	return "all log servers were killed"
}

// notOwnLog says why there is no such fault, "" if the nodes keep the log themselves.
func notOwnLog(tm *team) string {
	if tm.servers != nil {
		return "the log is on an external NATS"
	}
	return ""
}

// notExternal says why there is no such fault, "" if the log is on an external NATS.
func notExternal(tm *team) string {
	if tm.servers == nil {
		return "needs an external NATS"
	}
	return ""
}

// Three memnodes keep their log on three nats-servers of somebody else. Under writes a
// server and a memnode are killed in turn: what was acknowledged is on all nodes, once.
func TestClusterOnAnExternalNATSSurvivesLosses(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	servers := tm.onExternalNATS()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	tm.start(ctx)
	acked := map[string]memory.CaptureResult{}
	write := func(count int) {
		t.Helper()
		for range count {
			nodes := tm.alive()
			id := fmt.Sprintf("c%03d", len(acked))
			at := nodes[len(acked)%len(nodes)]
			began := time.Now()
			acked[id] = at.capture(ctx, id, "memory "+id)
			if took := time.Since(began); took > time.Second {
				t.Logf("%s at %s took %v, began %v", id, at.id, took.Round(time.Millisecond), began.Format(time.StampMilli))
			}
		}
	}
	write(20)
	for i, s := range servers[:2] {
		began := time.Now()
		s.kill()
		write(1)
		t.Logf("without the log server %d: written after %v", i+1, time.Since(began).Round(time.Millisecond))
		write(10)
		s.start()
		lead := tm.leader(ctx)
		began = time.Now()
		lead.kill()
		write(1)
		t.Logf("without %s, which led: written after %v", lead.id, time.Since(began).Round(time.Millisecond))
		write(10)
		lead.begin()
		lead.ready(ctx)
		write(5)
	}
	tm.same(ctx)
	for _, p := range tm.nodes {
		for id, want := range acked {
			if rec, err := p.client.Get(ctx, "default", want.RecordID, client.GetOptions{}); err != nil || rec.RecordID != want.RecordID {
				t.Errorf("%s at %s: %+v %v", id, p.id, rec, err)
			}
		}
		list, err := p.client.List(ctx, "default", client.ListOptions{ListRequest: memory.ListRequest{Limit: 200}})
		must(t, err)
		if len(list.Records) != len(acked) {
			t.Errorf("%s has %d records, acknowledged were %d", p.id, len(list.Records), len(acked))
		}
		if log, _ := filepath.Glob(filepath.Join(p.dir, "nats", "jetstream", "*")); len(log) > 0 {
			t.Errorf("%s keeps a log itself: %v", p.id, log)
		}
		if strings.Contains(p.out.String(), "mneme-node:n@") {
			t.Errorf("%s prints the password of the NATS", p.id)
		}
	}
	for _, p := range tm.nodes {
		p.term()
	}
}
