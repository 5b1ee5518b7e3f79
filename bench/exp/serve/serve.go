package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/pandoserver"
)

// childVariable makes this program, or a test of it, the server that is measured: a process of its own, as the others
// are.
const childVariable = "PANDO_BENCH_SERVE"

func init() {
	if os.Getenv(childVariable) == "" {
		return
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child serves an index in memory until its standard input ends.
func child() error {
	tree, err := pando.NewTree[string, []byte]()
	if err != nil {
		return err
	}
	srv, err := pandoserver.New(pandoserver.Tree(tree))
	if err != nil {
		return err
	}
	l, err := pandoserver.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println(l.Addr())
	return srv.Serve(ctx, l)
}

// server is a process that serves the keys of a data set.
type server struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.Closer // ours ends with it
	address string
	wires   []*wire
	bytes   float64 // of memory for an entry
	sets    bool    // has keys in order in a sorted set alone
}

const nameOurs = "Pando server"

// others are programs that speak the same protocol.
var others = []string{"redis-server", "valkey-server"}

// startOurs starts this program as a server.
func startOurs() (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	sv := &server{name: nameOurs, cmd: exec.Command(self)}
	sv.cmd.Env = append(os.Environ(), childVariable+"=1")
	in, out, err := startPiped(sv.cmd)
	if err != nil {
		return nil, err
	}
	sv.stdin = in
	line, err := out.ReadString('\n')
	if err != nil {
		sv.close()
		return nil, fmt.Errorf("%s did not begin: %w", sv.name, err)
	}
	sv.address = strings.TrimSpace(line)
	return sv, nil
}

// startPiped starts a program that is told what to do by its standard input, and ends with it.
func startPiped(cmd *exec.Cmd) (in io.WriteCloser, out *bufio.Reader, err error) {
	cmd.Stderr = os.Stderr
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	return in, bufio.NewReader(pipe), err
}

// freeAddress returns an address of this machine that was free a moment before.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startOther starts another server, by TCP as ours is. Its port was free a moment before.
func startOther(name, dir string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	sv := &server{name: name, address: address, sets: true, cmd: exec.Command(name, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)}
	if err := sv.cmd.Start(); err != nil {
		return nil, err
	}
	for range 500 {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return sv, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	sv.close()
	return nil, fmt.Errorf("%s does not listen", name)
}

func (sv *server) close() {
	for _, w := range sv.wires {
		w.conn.Close()
	}
	sv.wires = nil
	if sv.stdin != nil {
		sv.stdin.Close()
	} else {
		_ = sv.cmd.Process.Kill()
	}
	_ = sv.cmd.Wait() // it was told to end
}

// connect sees to it that there are some connections.
func (sv *server) connect(n int) error {
	for len(sv.wires) < n {
		w, err := dial("tcp", sv.address)
		if err != nil {
			return err
		}
		sv.wires = append(sv.wires, w)
	}
	return nil
}

// fill sets all keys in random order, and makes a sorted set of them where that is not the index itself.
func (sv *server) fill(d *data.Dataset[uint64], seed uint64) error {
	if err := sv.connect(1); err != nil {
		return err
	}
	w, before := sv.wires[0], sv.resident()
	const step = 1000
	keys := d.Shuffled(seed).Keys
	each := func(tell func(), hear func() error) error {
		for lo := 0; lo < len(keys); lo += step {
			w.keys = append(w.keys[:0], keys[lo:min(lo+step, len(keys))]...)
			tell()
			if err := w.send(); err != nil {
				return err
			}
			if err := hear(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := each(func() { tellMany(w) }, w.ok); err != nil {
		return err
	}
	if after := sv.resident(); before > 0 && after > before {
		sv.bytes = (after - before) / float64(len(keys))
	}
	if !sv.sets {
		return nil
	}
	return each(func() {
		w.begin(2 + 2*len(w.keys))
		w.text("ZADD")
		w.text(sorted)
		for _, k := range w.keys {
			w.text("0")
			w.key("", k)
		}
	}, func() error {
		n, err := w.line(':')
		if err != nil || n != len(w.keys) {
			return wrongCount(n, len(w.keys), err)
		}
		return nil
	})
}

// resident returns how many bytes of the process are in memory, as Linux tells it, or 0.
func (sv *server) resident() float64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(sv.cmd.Process.Pid), "statm"))
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		if pages, err := strconv.Atoi(fields[1]); err == nil {
			return float64(pages * os.Getpagesize())
		}
	}
	return 0
}

func wrongCount(got, want int, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("the reply is of %d, and not of %d", got, want)
}

func run(s *contest.Session, loads []load) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		servers, err := startAll(s, d)
		defer func() {
			for _, sv := range servers {
				sv.close()
			}
		}()
		if err != nil {
			return err
		}
		for _, clients := range s.Threads {
			for _, l := range loads {
				if err := compete(s, d, l, clients, servers); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// startAll starts all servers, and fills them.
func startAll(s *contest.Session, d *data.Dataset[uint64]) (servers []*server, err error) {
	add := func(sv *server, err error) error {
		if err != nil {
			return err
		}
		servers = append(servers, sv)
		s.Say("%s: filling with %s keys", sv.name, contest.SizeText(len(d.Keys)))
		return sv.fill(d, s.Seed)
	}
	if err := add(startOurs()); err != nil {
		return servers, err
	}
	dir, err := os.MkdirTemp("", "pando-serve-*")
	if err != nil {
		return servers, err
	}
	defer os.RemoveAll(dir) // none of them writes anything there
	for _, name := range others {
		if !s.Wanted(name) {
			continue
		}
		if _, err := exec.LookPath(name); err != nil {
			s.SkipOnce("%s: it is not installed here", name)
			continue
		}
		if err := add(startOther(name, dir)); err != nil {
			return servers, err
		}
	}
	return servers, nil
}

// compete measures one load by a number of connections.
func compete(s *contest.Session, d *data.Dataset[uint64], l load, clients int, servers []*server) error {
	c := &contest.Contest{N: len(d.Keys), Threads: clients, Label: l.name, Ops: max(s.Queries, l.steps), First: max(l.steps, 16*clients)}
	for i, sv := range servers {
		if err := sv.connect(clients); err != nil {
			return err
		}
		c.Subjects = append(c.Subjects, &contest.Subject{
			System: sv.name, Reference: i == 0, Bytes: sv.bytes,
			Do:    func(ops int) error { return drive(sv.wires[:clients], d.Keys, l, ops, s.Seed) },
			Check: func(int) error { return nil }, // each reply was
		})
	}
	if err := s.Compete(c); err != nil {
		return err
	}
	for _, r := range s.Latest(c) {
		r.Set(colRate, 1e9/r.Median)
	}
	return nil
}

// drive has connections do a load side by side, about ops operations in all.
func drive(wires []*wire, keys []uint64, l load, ops int, seed uint64) error {
	turns := max(1, ops/l.steps)
	failed := make([]error, len(wires))
	var all sync.WaitGroup
	for i, w := range wires {
		own := turns / len(wires)
		if i < turns%len(wires) {
			own++
		}
		w.rng = rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for range own {
				l.ask(w, keys)
				if failed[i] = w.send(); failed[i] != nil {
					return
				}
				if failed[i] = l.hear(w, keys); failed[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
