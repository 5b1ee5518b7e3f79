package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nodeProcess is pando serve --node as a process of its own.
type nodeProcess struct {
	run              *exec.Cmd
	clients, address string
}

// startNode starts one in a folder, by the command line that docs/cluster.md has but for the ports.
func startNode(t *testing.T, dir, name, clients, address string, join ...string) *nodeProcess {
	t.Helper()
	return startNodeBy(t, nil, dir, name, clients, address, join...)
}

// startNodeBy is startNode by another program, which becomes the node.
func startNodeBy(t *testing.T, by []string, dir, name, clients, address string, join ...string) *nodeProcess {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(by, program, "serve", name, "--node", name, "--listen", clients, "--http", "off", "--nodes", address)
	if len(join) > 0 {
		args = append(args, "--join", strings.Join(join, ","))
	}
	run := exec.Command(args[0], args[1:]...)
	run.Env = append(os.Environ(), "PANDO_TEST_MAIN=1")
	run.Dir = dir
	var errs bytes.Buffer
	run.Stderr = &errs
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &nodeProcess{run: run, address: address}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s: %s", name, errs.String())
		}
	})
	if p.clients, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%s: %v: %s", name, err, errs.String())
	}
	return p
}

func (p *nodeProcess) kill() {
	_ = p.run.Process.Kill()
	_ = p.run.Wait()
}

// steer runs pando cluster until it prints what it should, or for long enough.
func steer(t *testing.T, dir string, is func(out string) bool, args ...string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var out, errs bytes.Buffer
		code := run(append([]string{"cluster"}, append(args, "--certs", filepath.Join(dir, "certs"), "--timeout", "20s")...), &out, &errs)
		if code == exitOK && is(out.String()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("pando cluster %v: %d\n%s%s", args, code, out.String(), errs.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A stranger's five minutes: three processes, one is killed, and nothing is lost; it comes back; one is drained and
// removed when there is a fourth.
func TestClusterOfProcesses(t *testing.T) {
	dir := t.TempDir()
	at := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		at[name] = free(t)
	}
	nodes := map[string]*nodeProcess{"a": startNode(t, dir, "a", "127.0.0.1:0", at["a"])}
	for _, name := range []string{"b", "c"} {
		nodes[name] = startNode(t, dir, name, "127.0.0.1:0", at[name], at["a"])
	}
	three := func(names string) func(string) bool {
		return func(out string) bool {
			for _, l := range strings.Split(out, "\n") {
				f := strings.Fields(l)
				if len(f) == 0 || f[0] < "0" || f[0] > "9" {
					continue
				}
				for _, n := range strings.Fields(names) {
					if !strings.Contains(l, " "+n+" ") {
						return false
					}
				}
				if strings.Contains(l, "on its way") {
					return false
				}
			}
			return true
		}
	}
	steer(t, dir, three("a b c"), "status", "--at", at["b"])
	c := connect(t, nodes["c"].clients)
	for i := range 20 {
		c.want(fmt.Sprintf("SET k%02d %d", i, i), "+OK")
	}
	steer(t, dir, func(string) bool { return true }, "split", "k10", "--at", at["c"])
	c.want("PANDO.RANGE k08 k11 KEYS", "*4 k08 k09 k10 k11")

	steer(t, dir, func(out string) bool { return strings.Contains(out, "20 keys in 2 files") }, "backup", filepath.Join(dir, "backup"), "--at", at["b"])
	nodes["a"].kill()
	for i := range 20 {
		c.want(fmt.Sprintf("INCR k%02d", i), fmt.Sprintf(":%d", i+1))
	}
	connect(t, nodes["b"].clients).want("GET k19", "20")
	nodes["a"] = startNode(t, dir, "a", "127.0.0.1:0", at["a"])
	back := connect(t, nodes["a"].clients)
	back.want("GET k05", "6")
	back.want("ZCARD a", ":20")

	nodes["d"] = startNode(t, dir, "d", "127.0.0.1:0", at["d"], at["b"])
	var out, errs bytes.Buffer
	if code := run([]string{"cluster", "remove", "b", "--at", at["a"], "--certs", filepath.Join(dir, "certs")}, &out, &errs); code != exitUsage {
		t.Errorf("a node that has something was removed: %d %s", code, errs.String())
	}
	steer(t, dir, func(out string) bool { return strings.Contains(out, "b has nothing any more") }, "drain", "b", "--at", at["a"])
	steer(t, dir, func(string) bool { return true }, "remove", "b", "--at", at["a"])
	nodes["b"].kill()
	steer(t, dir, three("a c d"), "status", "--at", at["d"])
	c.want("GET k05", "6")

	// What was there before is restored into a cluster of one.
	alone := t.TempDir()
	is := free(t)
	one := startNode(t, alone, "e", "127.0.0.1:0", is)
	steer(t, alone, func(out string) bool { return strings.Contains(out, "20 keys in 2 files") }, "restore", filepath.Join(dir, "backup"), "--at", is)
	connect(t, one.clients).want("PANDO.RANGE k05 k05", "*2 k05 5")
	if code := run([]string{"cluster", "restore", filepath.Join(dir, "backup"), "--at", is, "--certs", filepath.Join(alone, "certs")}, &out, &errs); code != exitFailure || !strings.Contains(errs.String(), "without keys") {
		t.Errorf("it was restored twice: %d %s", code, errs.String())
	}
}

// The authority of a cluster is rotated by three commands, and what would leave a node out is refused.
func TestClusterRotate(t *testing.T) {
	certs := filepath.Join(t.TempDir(), "certs")
	do := func(want int, says string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(append(append([]string{"cluster"}, args...), "--certs", certs), &out, &errs); code != want || !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("%v: %d\n%s%s", args, code, out.String(), errs.String())
		}
	}
	do(exitOK, "", "init", "a", "b")
	do(exitOK, "copy", "rotate")
	do(exitOK, "", "add", "a")
	do(exitFailure, "b.crt", "rotate", "--end")
	do(exitOK, "", "add", "b")
	do(exitOK, "new authority alone", "rotate", "--end")
}
