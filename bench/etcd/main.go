// Program etcd is three members of etcd, each a process, and clients of them, for the benchmark's experiments cluster-…: those
// start it, and tell it line by line what to do. It is a module of its own, so that nothing else of Pando needs etcd's modules.
//
//	cd bench/etcd && go build -o ~/go/bin/pando-bench-etcd
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// memberVariable makes this program a member: its number, the cluster's folder, and all addresses.
const memberVariable = "PANDO_BENCH_ETCD"

func main() {
	do := steer
	if text := os.Getenv(memberVariable); text != "" {
		do = func() error { return member(strings.Fields(text)) }
	}
	if err := do(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func at(address string) []url.URL { return []url.URL{{Scheme: "http", Host: address}} }

// member runs a member until its standard input ends. The addresses are one for members and one for clients of each.
func member(args []string) error {
	c := embed.NewConfig()
	me, all := args[0], args[2:]
	n := int(me[0] - '0')
	c.Name, c.Dir, c.LogLevel, c.LogOutputs = me, filepath.Join(args[1], me), "fatal", []string{"stderr"}
	c.ListenPeerUrls, c.AdvertisePeerUrls = at(all[2*n]), at(all[2*n])
	c.ListenClientUrls, c.AdvertiseClientUrls = at(all[2*n+1]), at(all[2*n+1])
	var of []string
	for i := range len(all) / 2 {
		of = append(of, fmt.Sprintf("%d=http://%s", i, all[2*i]))
	}
	c.InitialCluster = strings.Join(of, ",")
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

func steer() error {
	dir, err := os.MkdirTemp("", "pando-etcd-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all []string
	var held []net.Listener // all at once, so that no two are the same
	for range 6 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		all, held = append(all, l.Addr().String()), append(held, l)
	}
	for _, l := range held {
		l.Close()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var clients []*clientv3.Client
	for i := range 3 {
		cmd := exec.Command(self)
		cmd.Env, cmd.Stderr = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", memberVariable, i, dir, strings.Join(all, " "))), os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer cmd.Wait()
		defer in.Close() // it ends with it
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{all[2*i+1]}, DialTimeout: 20 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
		defer c.Close()
		clients = append(clients, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, c := range clients {
		if _, err := c.Get(ctx, "ready"); err != nil {
			return err
		}
	}
	fmt.Println("ok")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var what string
		var workers, ops int
		var seed uint64
		if _, err := fmt.Sscan(lines.Text(), &what, &workers, &ops, &seed); err != nil {
			return err
		}
		if err := do(clients, what, workers, ops, seed); err != nil {
			return err
		}
		fmt.Println("ok")
	}
	return nil
}

// keys is how many keys there are: those that fill has put.
var keys int

// text returns key n, and its value, which is twice as long. Keys are spread as random ones are.
func text(n int) (key, val string) {
	key = fmt.Sprintf("%016x", uint64(n+1)*0x9E3779B97F4A7C15)
	return key, key + key
}

// do has workers do operations, spread over the members.
func do(clients []*clientv3.Client, what string, workers, ops int, seed uint64) error {
	if what == "fill" {
		keys = ops
	}
	var next atomic.Int64
	failed := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		c, rng := clients[w%len(clients)], rand.New(rand.NewPCG(seed, uint64(w)))
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= ops {
					return
				}
				if what != "fill" {
					i = rng.IntN(keys)
				}
				key, val := text(i)
				if what != "get" {
					if _, failed[w] = c.Put(context.Background(), key, val); failed[w] != nil {
						return
					}
					continue
				}
				r, err := c.Get(context.Background(), key)
				if err == nil && (len(r.Kvs) != 1 || string(r.Kvs[0].Value) != val) {
					err = fmt.Errorf("the value of %s is not there", key)
				}
				if failed[w] = err; err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
