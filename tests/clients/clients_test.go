// Package clients tries clients of redis, with their defaults, against package pandoserver: how they connect, pipelines, transactions,
// iterators over all keys, errors. It is a module of its own, so that nobody who uses Pando downloads them.
package clients

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/tool"
	"github.com/pando-index/pando/pandoserver"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// deadline is how long a client may take, on a machine that does much beside.
const deadline = 2 * time.Minute

// start serves an index in memory until the test ends, and returns its address.
func start(t *testing.T) string {
	t.Helper()
	tree, err := pando.NewTree[string, []byte]()
	if err != nil {
		t.Fatal(err)
	}
	srv, err := pandoserver.New(pandoserver.Tree(tree))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		tree.Close()
	})
	return l.Addr().String()
}

// tester compares what a client returns.
type tester struct{ *testing.T }

func (t tester) is(what string, got any, err error, want any) {
	t.Helper()
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, %v; want %v", what, got, err, want)
	}
}

// fails compares an error.
func (t tester) fails(what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v; want %q", what, err, want)
	}
}

func TestGoRedis(tt *testing.T) {
	t := tester{tt}
	ctx, stop := context.WithTimeout(context.Background(), deadline)
	defer stop()
	c := redis.NewClient(&redis.Options{Addr: start(tt)})
	defer c.Close()

	ok, err := c.Set(ctx, "apple", 3, 0).Result()
	t.is("SET", ok, err, "OK")
	n, err := c.Incr(ctx, "apple").Result()
	t.is("INCR", n, err, 4)
	if _, err := c.Get(ctx, "nosuch").Result(); err != redis.Nil {
		t.Errorf("GET of nothing: %v", err)
	}
	was, err := c.SetNX(ctx, "apple", 9, 0).Result()
	t.is("SETNX", was, err, false)

	replies, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "a", 1, 0)
		p.IncrBy(ctx, "a", 41)
		p.Do(ctx, "nosuch")
		p.MGet(ctx, "a", "b")
		return nil
	})
	t.fails("a pipeline", err, "unknown command")
	t.is("behind the error", replies[3].(*redis.SliceCmd).Val(), nil, []any{"42", nil})

	for round := range 50 { // the pool has several connections
		sums := make([]*redis.IntCmd, 20)
		if _, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range sums {
				sums[i] = p.Incr(ctx, "sum")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for i, s := range sums {
			t.is("INCR in a pipeline", s.Val(), s.Err(), round*20+i+1)
		}
	}

	var got *redis.StringCmd
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "b", "x", 0)
		p.Append(ctx, "b", "y")
		got = p.Get(ctx, "b")
		return nil
	})
	t.is("a transaction", got.Val(), err, "xy")
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "c", "x", 0)
		p.Do(ctx, "get")
		return nil
	})
	t.fails("a transaction with an error", err, "EXECABORT")
	n, err = c.Exists(ctx, "c").Result()
	t.is("EXISTS behind it", n, err, 0)

	c.Set(ctx, "text", "abc", 0)
	t.fails("INCR of a text", c.Incr(ctx, "text").Err(), "not an integer")
	t.fails("SET that expires", c.Set(ctx, "text", "abc", time.Minute).Err(), "does not expire")
	// WATCH is not there, and says so.
	t.fails("WATCH", c.Watch(ctx, func(*redis.Tx) error { return nil }, "a"), "unknown command")

	var pairs []any
	for i := range 1000 {
		pairs = append(pairs, "key:"+strconv.Itoa(i), i)
	}
	if err := c.MSet(ctx, pairs...).Err(); err != nil {
		t.Fatal(err)
	}
	keys, all := map[string]bool{}, c.Scan(ctx, 0, "key:*", 50).Iterator()
	for all.Next(ctx) {
		keys[all.Val()] = true
	}
	t.is("SCAN", len(keys), all.Err(), 1000)

	//lint:ignore SA1019 programs that were written before still send it
	list, err := c.ZRangeByLex(ctx, "index", &redis.ZRangeBy{Min: "[key:10", Max: "(key:101"}).Result()
	t.is("ZRANGEBYLEX", list, err, "[key:10 key:100]")
	entries, err := c.Do(ctx, "PANDO.RANGE", "key:10", "key:100").Result()
	t.is("PANDO.RANGE", entries, err, "[[key:10 10] [key:100 100]]")
}

func TestRueidis(tt *testing.T) {
	t := tester{tt}
	ctx, stop := context.WithTimeout(context.Background(), deadline)
	defer stop()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{start(tt)}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	if err := c.Do(ctx, c.B().Set().Key("apple").Value("3").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	n, err := c.Do(ctx, c.B().Incr().Key("apple").Build()).AsInt64()
	t.is("INCR", n, err, 4)
	if err := c.Do(ctx, c.B().Get().Key("nosuch").Build()).Error(); !rueidis.IsRedisNil(err) {
		t.Errorf("GET of nothing: %v", err)
	}

	var commands rueidis.Commands
	for range 500 {
		commands = append(commands, c.B().Incr().Key("sum").Build())
	}
	for i, r := range c.DoMulti(ctx, commands...) {
		n, err := r.AsInt64()
		t.is("INCR in a pipeline", n, err, i+1)
	}
	replies := c.DoMulti(ctx, c.B().Arbitrary("NOSUCH").Build(), c.B().Get().Key("sum").Build())
	t.fails("an unknown command", replies[0].Error(), "unknown command")
	sum, err := replies[1].ToString()
	t.is("behind the error", sum, err, "500")

	err = c.Dedicated(func(d rueidis.DedicatedClient) error {
		replies := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Set().Key("b").Value("x").Build(), d.B().Append().Key("b").Value("y").Build(), d.B().Exec().Build())
		all, err := replies[3].ToArray()
		if err != nil {
			return err
		}
		n, err := all[1].AsInt64()
		t.is("a transaction", n, err, 2)
		return nil
	})
	if err != nil {
		t.Error(err)
	}

	t.fails("INCR of a text", c.Do(ctx, c.B().Incr().Key("b").Build()).Error(), "not an integer")
	// Its cache asks the server to track keys, which it does not: that is an error, and never stale data.
	t.fails("its cache", c.DoCache(ctx, c.B().Get().Key("b").Cache(), time.Minute).Error(), "")

	set := make(rueidis.Commands, 0, 1000)
	for i := range 1000 {
		set = append(set, c.B().Set().Key("key:"+strconv.Itoa(i)).Value(strconv.Itoa(i)).Build())
	}
	for _, r := range c.DoMulti(ctx, set...) {
		if err := r.Error(); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[string]bool{}
	scanner := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
		return c.Do(ctx, c.B().Scan().Cursor(cursor).Match("key:*").Count(50).Build()).AsScanEntry()
	})
	for key := range scanner.Iter() {
		keys[key] = true
	}
	t.is("SCAN", len(keys), scanner.Err(), 1000)

	list, err := c.Do(ctx, c.B().Arbitrary("PANDO.RANGE").Args("key:10", "key:100", "KEYS").Build()).AsStrSlice()
	t.is("PANDO.RANGE", list, err, "[key:10 key:100]")
}

// The clients in JavaScript, which make clients gets by npm.
func TestNode(t *testing.T) {
	node := tool.Path(t, "node", "nodejs")
	for _, name := range []string{"ioredis", "redis"} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join("node", "node_modules", name, "package.json")); err != nil {
				t.Fatalf("%s is not there: make clients gets it by npm", name)
			}
			_, port, _ := net.SplitHostPort(start(t))
			ctx, stop := context.WithTimeout(context.Background(), deadline)
			defer stop()
			out, err := exec.CommandContext(ctx, node, filepath.Join("node", name+".js"), port).CombinedOutput()
			if err != nil || string(out) != "well\n" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
