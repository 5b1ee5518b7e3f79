package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/pandocluster"
)

// member is a node of a cluster on this machine.
type member struct {
	Name, Dir, Certs, Address string
	Join                      []string
	Beat                      time.Duration // 0 for the default
}

// open opens the node, and answers other nodes until end is called.
func (m member) open() (n *pandocluster.Node, end func(), err error) {
	t, err := pandocluster.OpenTLS(m.Certs, m.Name, nil)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", m.Address)
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	if n, err = pandocluster.Open(m.Dir, pandocluster.Options{
		Name: m.Name, Addr: l.Addr().String(), Transport: t, Join: m.Join, Beat: m.Beat, Plan: pandocluster.Planned(3, 0),
	}); err != nil {
		return nil, nil, errors.Join(err, l.Close(), t.Close())
	}
	go func() { _ = t.Serve(l, n) }() // until t is closed
	return n, func() { t.Close(); n.Close() }, nil
}

// names are those of the nodes.
var names = []string{"a", "b", "c"}

// cluster is three nodes, each a process; the first may be this one.
type cluster struct {
	dir     string
	of      []member
	servers []*server          // of those that are processes of their own, by number
	own     *pandocluster.Node // or nil
	end     func()             // of own
	steer   *pandocluster.TLS
}

// startCluster starts a cluster, and waits until each range is on all nodes. If within is set the first node is in this process.
func startCluster(within bool, beat time.Duration) (_ *cluster, err error) {
	c := &cluster{servers: make([]*server, len(names))}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.dir, err = os.MkdirTemp("", "pando-cluster-*"); err != nil {
		return nil, err
	}
	certs := filepath.Join(c.dir, "certs")
	if _, err := pandocluster.MakeAuthority(certs); err != nil {
		return nil, err
	}
	for _, name := range append(slices.Clone(names), "admin") {
		if err := pandocluster.IssueCertificate(certs, name); err != nil {
			return nil, err
		}
	}
	if c.steer, err = pandocluster.OpenTLS(certs, "admin", nil); err != nil {
		return nil, err
	}
	for i, name := range names {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		m := member{Name: name, Dir: filepath.Join(c.dir, name), Certs: certs, Address: address, Beat: beat}
		if i > 0 {
			m.Join = []string{c.of[0].Address}
		}
		c.of = append(c.of, m)
		if i == 0 && within {
			if c.own, c.end, err = m.open(); err != nil {
				return nil, err
			}
		} else if err := c.start(i); err != nil {
			return nil, err
		}
	}
	return c, c.whole()
}

// startFilled starts a cluster whose nodes are processes of their own, and sets all keys.
func startFilled(d *data.Dataset[uint64], beat time.Duration, seed uint64) (*cluster, error) {
	c, err := startCluster(false, beat)
	if err != nil {
		return nil, err
	}
	if err := c.servers[0].fill(d, seed); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// freeAddress returns an address of this machine that was free a moment before.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start starts the process of a node.
func (c *cluster) start(i int) error {
	text, err := json.Marshal(c.of[i])
	if err != nil {
		return err
	}
	c.servers[i], err = startOurs(nameCluster, string(text))
	return err
}

// picture asks the nodes in turn.
func (c *cluster) picture() (p pandocluster.Picture, err error) {
	for _, m := range c.of {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		p, err = c.steer.Steer(m.Address).Picture(ctx)
		cancel()
		if err == nil {
			return p, nil
		}
	}
	return p, err
}

// whole waits until each range has three votes.
func (c *cluster) whole() error {
	var p pandocluster.Picture
	var err error
	for range 600 {
		if p, err = c.picture(); err == nil && allVote(&p) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the cluster is not whole after a minute: %v, %+v", err, p.Ranges)
}

func allVote(p *pandocluster.Picture) bool {
	for _, r := range p.Ranges {
		votes := 0
		for _, x := range r.Replicas {
			if x.Voter {
				votes++
			}
		}
		if votes != len(names) || r.Leader == "" {
			return false
		}
	}
	return len(p.Ranges) > 1
}

// leader returns the number of the node that leads the keys.
func (c *cluster) leader() (int, error) {
	p, err := c.picture()
	if err != nil {
		return 0, err
	}
	for _, n := range p.Nodes {
		if n.ID == p.Ranges[len(p.Ranges)-1].Leader {
			return slices.Index(names, n.Name), nil
		}
	}
	return 0, errors.New("nobody leads the keys")
}

func (c *cluster) close() {
	if c.end != nil {
		c.end()
	}
	for _, sv := range c.servers {
		if sv != nil {
			sv.close()
		}
	}
	if c.steer != nil {
		c.steer.Close()
	}
	os.RemoveAll(c.dir)
}

// etcd is a cluster of three members of it, with clients, in a program of its own: it is told what to do line by line.
type etcd struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// nameEtcd is the program's; bench/etcd has it.
const nameEtcd = "pando-bench-etcd"

func startEtcd() (*etcd, error) {
	e := &etcd{cmd: exec.Command(nameEtcd)}
	var err error
	if e.in, e.out, err = startPiped(e.cmd); err != nil {
		return nil, err
	}
	if err := e.answer(); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// do has clients do operations: get or put of keys of a seed.
func (e *etcd) do(what string, clients, ops int, seed uint64) error {
	if _, err := fmt.Fprintln(e.in, what, clients, ops, seed); err != nil {
		return err
	}
	return e.answer()
}

func (e *etcd) answer() error {
	line, err := e.out.ReadString('\n')
	if err == nil && line != "ok\n" {
		err = fmt.Errorf("%s: %s", nameEtcd, strings.TrimSpace(line))
	}
	return err
}

func (e *etcd) close() {
	e.in.Close()
	_ = e.cmd.Wait() // its standard input has ended
}
