//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"github.com/pando-index/pando/internal/seed"
)

// machines are network namespaces on a bridge, each with a disk of its own, which is a tmpfs: a cluster's, but for the processor.
type machines struct {
	t    *testing.T
	dir  string
	name string // what namespaces begin with
	all  map[string]*nodeProcess
}

// machined skips a test where there are none.
func machined(t *testing.T, names string) *machines {
	t.Helper()
	if !seed.Long() {
		t.Skip("it takes a minute: PANDO_LONG=1 runs it")
	}
	if os.Geteuid() != 0 {
		t.Skip("network namespaces and tmpfs need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need the command ip (Debian's package iproute2)")
	}
	m := &machines{t: t, dir: t.TempDir(), name: fmt.Sprintf("pando%d", os.Getpid()), all: map[string]*nodeProcess{}}
	need := func(args ...string) {
		t.Helper()
		if err := m.ip(args...); err != nil {
			t.Skipf("no network of namespaces can be made here: %v", err)
		}
	}
	need("netns", "add", m.ns("hub"))
	t.Cleanup(func() { _ = m.ip("netns", "del", m.ns("hub")) })
	need("-n", m.ns("hub"), "link", "add", "bridge", "type", "bridge")
	need("-n", m.ns("hub"), "link", "set", "bridge", "up")
	for i, c := range names {
		name := string(c)
		need("netns", "add", m.ns(name))
		t.Cleanup(func() { _ = m.ip("netns", "del", m.ns(name)) })
		need("-n", m.ns("hub"), "link", "add", "to-"+name, "type", "veth", "peer", "name", "eth0", "netns", m.ns(name))
		need("-n", m.ns("hub"), "link", "set", "to-"+name, "master", "bridge", "up")
		need("-n", m.ns(name), "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "eth0")
		need("-n", m.ns(name), "link", "set", "eth0", "up")
		need("-n", m.ns(name), "link", "set", "lo", "up")
		disk := filepath.Join(m.dir, name)
		if err := os.Mkdir(disk, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("pando", disk, "tmpfs", 0, "size=400m"); err != nil {
			t.Skipf("no tmpfs can be mounted here: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	}
	return m
}

func (m *machines) ns(name string) string { return m.name + name }

func (m *machines) ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}

// link sets the link of a machine up or down.
func (m *machines) link(name, to string) {
	m.t.Helper()
	if err := m.ip("-n", m.ns("hub"), "link", "set", "to-"+name, to); err != nil {
		m.t.Fatal(err)
	}
}

func addressOf(name string) string { return fmt.Sprintf("10.77.0.%d:16379", name[0]-'a'+1) }

// start starts the node of a machine.
func (m *machines) start(name string, join ...string) {
	m.t.Helper()
	m.all[name] = startNodeBy(m.t, []string{"ip", "netns", "exec", m.ns(name)}, m.dir, name, "127.0.0.1:6379", addressOf(name), join...)
}

// dial connects to a node for its clients, from its own machine.
func (m *machines) dial(name string) (net.Conn, error) {
	runtime.LockOSThread()
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer here.Close()
	there, err := os.Open("/var/run/netns/" + m.ns(name))
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", "127.0.0.1:6379", time.Second)
	if back := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); back == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
	return conn, err
}

// talk is a client that takes errors as they come.
type talk struct {
	conn net.Conn
	r    *bufio.Reader
}

// do sends a command and returns its reply, "" for none. An error says that nobody knows what was done.
func (c *talk) do(line string) (reply string, err error) {
	_ = c.conn.SetDeadline(time.Now().Add(15 * time.Second))
	if _, err := io.WriteString(c.conn, line+"\r\n"); err != nil {
		return "", err
	}
	text, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	text = strings.TrimRight(text, "\r\n")
	switch {
	case text == "$-1":
		return "", nil
	case strings.HasPrefix(text, "$"):
		n, err := strconv.Atoi(text[1:])
		if err != nil {
			return "", err
		}
		b := make([]byte, n+2)
		_, err = io.ReadFull(c.r, b)
		return string(b[:n]), err
	case strings.HasPrefix(text, "-"):
		return "", fmt.Errorf("%s", text[1:])
	}
	return text[1:], nil
}

// call is what a client has done with a key: got a number from it, 0 for none, or set one.
type call struct {
	set bool
	n   int
}

// register is a key as porcupine sees it. An output of nil is not known.
var register = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(at, in, out any) (bool, any) {
		if c := in.(call); c.set {
			return true, c.n
		}
		return out.(int) == at.(int), at
	},
}

// Machines of a cluster are killed, paused, cut off, and their disks filled, while clients write and read: all that was acknowledged is
// there afterwards, and what each key was is linearizable. PANDO_FAULTS says how many faults.
func TestClusterOfMachines(t *testing.T) {
	const names = "abc"
	m := machined(t, names)
	rng := seed.Rand(t)
	faults := 8
	if text := os.Getenv("PANDO_FAULTS"); text != "" {
		var err error
		if faults, err = strconv.Atoi(text); err != nil || faults < 0 || faults > 10_000 {
			t.Fatalf("PANDO_FAULTS=%s: %v", text, err)
		}
	}
	m.start("a")
	m.start("b", addressOf("a"))
	m.start("c", addressOf("a"))
	m.whole()

	var clock atomic.Int64
	var mu sync.Mutex
	histories := map[string][]porcupine.Operation{}
	kept := map[string]string{} // what was acknowledged of keys that are set once
	unknown := 0
	stop := make(chan struct{})
	var clients sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); clients.Wait() })
	defer end()
	for client := range 5 {
		own := rand.New(rand.NewPCG(rng.Uint64(), uint64(client)))
		clients.Go(func() {
			var c *talk
			defer func() {
				if c != nil {
					c.conn.Close()
				}
			}()
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(own.IntN(int(20 * time.Millisecond)))):
				}
				if c == nil {
					conn, err := m.dial(string(names[own.IntN(len(names))]))
					if err != nil {
						continue
					}
					c = &talk{conn, bufio.NewReader(conn)}
				}
				val := n*10 + client + 1
				var err error
				switch key := fmt.Sprintf("key%d", own.IntN(8)); own.IntN(3) {
				case 0: // once
					key = fmt.Sprintf("once/%d/%d", client, n)
					if _, err = c.do(fmt.Sprintf("SET %s %d", key, val)); err == nil {
						mu.Lock()
						kept[key] = strconv.Itoa(val)
						mu.Unlock()
					}
				case 1:
					begin := clock.Add(1)
					_, err = c.do(fmt.Sprintf("SET %s %d", key, val))
					o := porcupine.Operation{ClientId: client, Input: call{true, val}, Call: begin, Return: clock.Add(1)}
					mu.Lock()
					if err != nil {
						unknown++
						o.ClientId, o.Return = 1000+unknown, 1<<62
					}
					histories[key] = append(histories[key], o)
					mu.Unlock()
				case 2:
					begin := clock.Add(1)
					var got string
					if got, err = c.do("GET " + key); err == nil {
						was, _ := strconv.Atoi(got)
						mu.Lock()
						histories[key] = append(histories[key], porcupine.Operation{ClientId: client, Input: call{}, Output: was, Call: begin, Return: clock.Add(1)})
						mu.Unlock()
					}
				}
				if err != nil {
					c.conn.Close()
					c = nil
				}
			}
		})
	}
	did := map[string]int{}
	for range faults {
		name := string(names[rng.IntN(len(names))])
		d := time.Duration(500+rng.IntN(5000)) * time.Millisecond
		fault := []string{"kill", "pause", "cut", "fill"}[rng.IntN(4)]
		did[fault]++
		p := m.all[name]
		switch fault {
		case "kill":
			p.kill()
			time.Sleep(d)
			m.start(name)
		case "pause":
			_ = p.run.Process.Signal(syscall.SIGSTOP)
			time.Sleep(d)
			_ = p.run.Process.Signal(syscall.SIGCONT)
		case "cut":
			m.link(name, "down")
			time.Sleep(d)
			m.link(name, "up")
		case "fill":
			file := filepath.Join(m.dir, name, "filler")
			fill(t, file)
			if m.burden(p, 20*time.Second) {
				did["ended by a full disk"]++
			}
			p.kill()
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			m.start(name)
		}
		m.whole()
	}
	end()
	conn, err := m.dial("b")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &talk{conn, bufio.NewReader(conn)}
	for key, want := range kept {
		if got, err := c.do("GET " + key); got != want || err != nil {
			t.Errorf("%s is %q and was acknowledged as %q: %v", key, got, want, err)
		}
	}
	known := 0
	for key, ops := range histories {
		known += len(ops)
		begin := clock.Add(1)
		got, err := c.do("GET " + key)
		if err != nil {
			t.Fatal(err)
		}
		was, _ := strconv.Atoi(got)
		ops = append(ops, porcupine.Operation{ClientId: 999, Input: call{}, Output: was, Call: begin, Return: clock.Add(1)})
		if porcupine.CheckOperationsTimeout(register, ops, time.Minute) == porcupine.Illegal {
			t.Errorf("the history of %s is not linearizable: %+v", key, ops)
		}
	}
	t.Logf("%v; %d keys acknowledged, %d operations in histories, %d of them unknown", did, len(kept), known, unknown)
	if len(kept) < 10*faults {
		t.Errorf("only %d changes were acknowledged", len(kept))
	}
}

// burden writes much to the cluster until a node has ended by itself, and reports whether it has.
func (m *machines) burden(p *nodeProcess, most time.Duration) bool {
	var c *talk
	defer func() {
		if c != nil {
			c.conn.Close()
		}
	}()
	val := strings.Repeat("x", 256<<10)
	for i, end := 0, time.Now().Add(most); time.Now().Before(end); i++ {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.run.Process.Pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		if c == nil {
			conn, err := m.dial("abc"[i%3 : i%3+1])
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			c = &talk{conn, bufio.NewReader(conn)}
		}
		if _, err := c.do(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$7\r\nballast\r\n$%d\r\n%s", len(val), val)); err != nil {
			c.conn.Close()
			c = nil
		}
	}
	return false
}

// fill fills a disk.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for data := make([]byte, 1<<20); len(data) > 0; {
		if _, err := f.Write(data); err != nil {
			data = data[:len(data)/2] // to the last byte
		}
	}
}

// whole waits until all machines have a replica of all, with a vote, and answer.
func (m *machines) whole() {
	m.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		out, err := m.status()
		if err == nil {
			for name := range m.all {
				conn, failed := m.dial(name)
				if failed == nil {
					_, failed = (&talk{conn, bufio.NewReader(conn)}).do("GET key0")
					conn.Close()
				}
				if failed != nil {
					err = fmt.Errorf("%s: %w", name, failed)
				}
			}
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("the cluster is not whole: %v\n%s", err, out)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// status returns an error unless all nodes are up, and all ranges have all of them.
func (m *machines) status() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	ask := exec.Command("ip", "netns", "exec", m.ns("a"), program, "cluster", "status", "--at", addressOf("a"), "--timeout", "5s")
	ask.Env = append(os.Environ(), "PANDO_TEST_MAIN=1")
	ask.Dir = m.dir
	b, err := ask.CombinedOutput()
	out := string(b)
	switch {
	case err != nil:
		return out, err
	case strings.Count(out, " up ") != len(m.all):
		return out, fmt.Errorf("not all are up")
	case strings.Contains(out, "on its way"):
		return out, fmt.Errorf("not all replicas have votes")
	}
	for _, l := range strings.Split(out[strings.Index(out, "range "):], "\n")[1:] {
		for name := range m.all {
			if l = strings.TrimSpace(l) + " "; len(l) > 1 && !strings.Contains(l, " "+name+" ") {
				return out, fmt.Errorf("a range is not on %s", name)
			}
		}
	}
	return out, nil
}
