package pandocluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandocluster/internal/ca"
)

// process is a node as a process has it: with a disk and TLS.
type process struct {
	node *Node
	tls  *TLS
	addr string
	done chan error
}

func start(t *testing.T, certs, name, addr string, join ...string) *process {
	t.Helper()
	if err := EnsureCertificate(certs, name, len(join) == 0); err != nil {
		t.Fatal(err)
	}
	tr, err := OpenTLS(certs, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{tls: tr, addr: l.Addr().String(), done: make(chan error, 1)}
	p.node, err = Open(filepath.Join(certs, "..", name), Options{
		Name: name, Addr: p.addr, Transport: tr, Join: join, Plan: Planned(3, time.Hour), PlanEvery: 100 * time.Millisecond, Beat: 500 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- tr.Serve(l, p.node) }()
	t.Cleanup(func() { p.stop(t) })
	return p
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.node == nil {
		return
	}
	p.tls.Close()
	if err := <-p.done; err != nil {
		t.Error(err)
	}
	if err := p.node.Close(); err != nil {
		t.Error(err)
	}
	p.node = nil
}

// eventually waits until the picture of a cluster is as it should be.
func eventually(t *testing.T, s *Steering, what string, is func(Picture) bool) (p Picture) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		p, err := s.Picture(ctx)
		cancel()
		if err == nil && is(p) {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %+v, %v", what, p, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// held returns whether every range has votes of so many nodes, and no replica more.
func held(votes int) func(Picture) bool {
	return func(p Picture) bool {
		for _, r := range p.Ranges {
			for _, x := range r.Replicas {
				if !x.Voter {
					return false
				}
			}
			if len(r.Replicas) != votes {
				return false
			}
		}
		return len(p.Ranges) > 1
	}
}

func set(n *Node, key, val string) error {
	return n.Apply([]pando.Op{pando.OpSet}, []string{key}, [][]byte{[]byte(val)}, nil)
}

// A cluster over TLS grows from one node to three by its planner, is split, and loses nothing when a node ends; a node with another
// cluster's certificate does not get in.
func TestOverTLS(t *testing.T) {
	certs := filepath.Join(t.TempDir(), "certs")
	a := start(t, certs, "a", "127.0.0.1:0")
	for i := range 50 {
		if err := set(a.node, fmt.Sprintf("k%02d", i), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	b := start(t, certs, "b", "127.0.0.1:0", a.addr)
	c := start(t, certs, "c", "127.0.0.1:0", a.addr)
	if err := EnsureCertificate(certs, "admin", false); err != nil {
		t.Fatal(err)
	}
	admin, err := OpenTLS(certs, "admin", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	steer := admin.Steer(b.addr)
	eventually(t, steer, "three votes of each range", held(3))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := steer.Do(ctx, Step{Kind: Split, Range: 1}); err != nil {
		t.Fatal(err)
	}
	if err := steer.Do(ctx, Step{Kind: Split, Key: "k10"}); err != nil {
		t.Fatal(err)
	}
	p := eventually(t, steer, "three ranges of keys", func(p Picture) bool { return held(3)(p) && len(p.Ranges) == 4 })
	if p.Ranges[2].Lo != "k10" || p.Ranges[3].Lo != "k25" {
		t.Errorf("%+v", p.Ranges)
	}

	strange := filepath.Join(t.TempDir(), "certs")
	if err := EnsureCertificate(strange, "d", true); err != nil {
		t.Fatal(err)
	}
	d, err := OpenTLS(strange, "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Steer(a.addr).Picture(ctx); !errors.Is(err, ca.ErrCluster) {
		t.Errorf("a node of another cluster: %v", err)
	}

	c.stop(t)
	for i := range 50 {
		if err := set(b.node, fmt.Sprintf("k%02d", i), fmt.Sprint(-i)); err != nil {
			t.Fatal(err)
		}
	}
	c = start(t, certs, "c", c.addr, a.addr)
	keys, vals, found := make([]string, 50), make([][]byte, 50), make([]bool, 50)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%02d", i)
	}
	if err := c.node.get(ctx, keys, vals, found); err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		if !found[i] || string(vals[i]) != fmt.Sprint(-i) {
			t.Errorf("%s is %s, %v", keys[i], vals[i], found[i])
		}
	}
}

// A node that was removed is refused with its certificate, which is good for a year, also by a node that has just started; and
// let in, as a new one, with one that was made for it later.
func TestRemovedNode(t *testing.T) {
	certs := filepath.Join(t.TempDir(), "certs")
	a := start(t, certs, "a", "127.0.0.1:0")
	b := start(t, certs, "b", "127.0.0.1:0", a.addr)
	if err := EnsureCertificate(certs, "admin", false); err != nil {
		t.Fatal(err)
	}
	admin, err := OpenTLS(certs, "admin", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	steer := admin.Steer(a.addr)
	eventually(t, steer, "two nodes", func(p Picture) bool { return len(p.Nodes) == 2 })
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // certificates say when they were made in seconds
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := steer.Do(ctx, Step{Kind: Forget, Node: b.node.ID()}); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		for ctx.Err() == nil {
			old, err := OpenTLS(certs, "b", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = old.Steer(a.addr).Picture(ctx)
			old.Close()
			if err != nil && strings.Contains(err.Error(), "b was removed") {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s: it is not refused", what)
	}
	refused("at once")
	b.stop(t)
	addr := a.addr
	refused("without it")
	a.stop(t)
	a = start(t, certs, "a", addr)
	old, err := OpenTLS(certs, "b", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if _, err := old.Steer(a.addr).Picture(ctx); err == nil || !strings.Contains(err.Error(), "b was removed") {
		t.Errorf("after a start: %v", err)
	}
	if err := IssueCertificate(certs, "b"); err != nil {
		t.Fatal(err)
	}
	again, err := OpenTLS(certs, "b", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Steer(a.addr).Picture(ctx); err != nil {
		t.Error(err)
	}
}

// What a picture has for the planner: only what has changed is told, and the map is not split.
func TestPlanned(t *testing.T) {
	plan := Planned(3, time.Minute)
	pic := Picture{
		Nodes:  []NodeInfo{{ID: "a.1"}, {ID: "b.1"}, {ID: "c.1"}},
		Ranges: []RangeInfo{{ID: 0, Leader: "a.1", Replicas: []ReplicaInfo{{"a.1", true}}, Bytes: 1 << 40, Keys: 100}, {ID: 1, Leader: "a.1", Replicas: []ReplicaInfo{{"a.1", true}, {"b.1", false}}}},
	}
	want := func(steps ...Step) {
		t.Helper()
		for range 2 {
			if got := plan(pic); fmt.Sprint(got) != fmt.Sprint(steps) {
				t.Errorf("%+v, not %+v", got, steps)
			}
		}
	}
	want(Step{Kind: AddReplica, Range: 0, Node: "c.1"}, Step{Kind: Promote, Range: 1, Node: "b.1"})
	three := []ReplicaInfo{{"a.1", true}, {"b.1", true}, {"c.1", true}}
	pic.Ranges[0].Replicas, pic.Ranges[1].Replicas = three, three
	pic.Ranges[1].Leader = "b.1"
	want()
	pic.Ranges[1].Bytes, pic.Ranges[1].Keys = 1<<30, 100
	want(Step{Kind: Split, Range: 1})
	pic.Ranges[1].Bytes = 1 << 20
	pic.Nodes[2].Silent = 10 * time.Second
	pic.Nodes = append(pic.Nodes, NodeInfo{ID: "d.1", Silent: 10 * time.Second})
	want()
	pic.Nodes[2].Silent, pic.Nodes[3].Silent = 2*time.Minute, 0
	want(Step{Kind: AddReplica, Range: 0, Node: "d.1"}, Step{Kind: AddReplica, Range: 1, Node: "d.1"})
	pic.Nodes[2].Silent, pic.Nodes[2].Gone = 0, true
	want(Step{Kind: AddReplica, Range: 0, Node: "d.1"}, Step{Kind: AddReplica, Range: 1, Node: "d.1"})
}
