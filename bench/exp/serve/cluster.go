package serve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
)

const (
	nameCluster = "Pando cluster"
	nameTree    = "Pando tree"
	colP50      = "p50 ms"
	colP99      = "p99 ms"
)

var clusterSingle = &contest.Experiment{
	Name: "cluster-single", About: "SET and GET of one key each at three nodes on this machine, every one on the disks of two; --threads are the clients",
	Per: "one command", CaseName: "load", Sizes: []int{contest.Kilo * 64}, Queries: 20_000, Threads: []int{1, connections},
	Extra: []contest.ExtraColumn{{Name: colRate, Format: contest.Number}},
	Run:   runClusterSingle,
}

var clusterBatch = &contest.Experiment{
	Name: "cluster-batch", About: "batches of 64K pairs at a node in this process, two others are processes of their own; the tree alone beside it",
	Per: "one pair", CaseName: "load", Sizes: []int{contest.Mega}, Queries: contest.Mega,
	Extra: []contest.ExtraColumn{{Name: colRate, Format: contest.Number}},
	Run:   runClusterBatch,
}

var clusterReads = &contest.Experiment{
	Name: "cluster-reads", About: "MGET of 1000 keys, by clients of one, two and three of three nodes; --threads are the clients",
	Per: "one key", CaseName: "load", Sizes: []int{contest.Mega}, Queries: 2 * contest.Mega, Threads: []int{12},
	Extra: []contest.ExtraColumn{{Name: colRate, Format: contest.Number}},
	Run:   runClusterReads,
}

var clusterFailover = &contest.Experiment{
	Name: "cluster-failover", About: "from the kill of the leader to the next change that another node acknowledges; three kills for each of --rounds",
	Per: "one kill", CaseName: "a leader may be silent", Sizes: []int{contest.Kilo},
	Extra: []contest.ExtraColumn{{Name: colP50, Format: contest.Number}, {Name: colP99, Format: contest.Number}},
	Run:   runClusterFailover,
}

func runClusterSingle(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		c, err := startFilled(d, 0, s.Seed)
		if err != nil {
			return err
		}
		defer c.close()
		var other *etcd
		if s.Wanted("etcd") {
			if _, err := exec.LookPath(nameEtcd); err != nil {
				s.SkipOnce("etcd: %s is not installed here: (cd bench/etcd && go build -o ~/go/bin/%[1]s)", nameEtcd)
			} else if other, err = startEtcd(); err != nil {
				return err
			} else {
				defer other.close()
				if err := other.do("fill", 50, len(d.Keys), s.Seed); err != nil {
					return err
				}
			}
		}
		for _, clients := range s.Threads {
			for _, l := range []struct {
				load
				at string
			}{{setOne(1), "put"}, {getOne(1), "get"}} {
				c := &contest.Contest{N: len(d.Keys), Threads: clients, Label: l.name, Ops: s.Queries, First: 4 * clients, Subjects: []*contest.Subject{
					c.subject(d, l.load, clients, len(names), s.Seed, nameCluster),
				}}
				c.Subjects[0].Reference = true
				if other != nil {
					c.Subjects = append(c.Subjects, &contest.Subject{
						System: "etcd", Do: func(ops int) error { return other.do(l.at, clients, ops, s.Seed) },
						Check: func(int) error { return nil }, // each answer was
					})
				}
				if err := rates(s, c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// rates measures a contest, and says how many operations there are in a second.
func rates(s *contest.Session, c *contest.Contest) error {
	if err := s.Compete(c); err != nil {
		return err
	}
	for _, r := range s.Latest(c) {
		r.Set(colRate, 1e9/r.Median)
	}
	return nil
}

// subject is a load by clients that are spread over some of the nodes.
func (c *cluster) subject(d *data.Dataset[uint64], l load, clients, nodes int, seed uint64, name string) *contest.Subject {
	var wires []*wire
	return &contest.Subject{
		System: name,
		Do: func(ops int) error {
			for i := len(wires); i < clients; i++ {
				w, err := dial("tcp", c.servers[i%nodes].address)
				if err != nil {
					return err
				}
				wires, c.servers[i%nodes].wires = append(wires, w), append(c.servers[i%nodes].wires, w)
			}
			return drive(wires, d.Keys, l, ops, seed)
		},
		Check: func(int) error { return nil }, // each reply was
	}
}

func runClusterReads(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		c, err := startFilled(d, 0, s.Seed)
		if err != nil {
			return err
		}
		defer c.close()
		for _, clients := range s.Threads {
			of := &contest.Contest{N: len(d.Keys), Threads: clients, Label: "MGET", Ops: s.Queries, First: 1000 * clients}
			for nodes := 1; nodes <= len(names); nodes++ {
				sub := c.subject(d, getMany(1000), clients, nodes, s.Seed, fmt.Sprintf("%s, %d asked", nameCluster, nodes))
				sub.Reference = nodes == 1
				of.Subjects = append(of.Subjects, sub)
			}
			if err := rates(s, of); err != nil {
				return err
			}
		}
		return nil
	})
}

// batchOf is how many pairs a batch has.
const batchOf = 64 << 10

// batcher is what does batches.
type batcher struct {
	name string
	set  func(keys []string, vals [][]byte) error
	get  func(keys []string, vals [][]byte, found []bool) int
}

func runClusterBatch(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		c, err := startCluster(true, 0)
		if err != nil {
			return err
		}
		defer c.close()
		tree, err := pando.NewTree[string, []byte]()
		if err != nil {
			return err
		}
		defer tree.Close()
		ops := slices.Repeat([]pando.Op{pando.OpSet}, batchOf)
		all := []batcher{
			{nameCluster, func(keys []string, vals [][]byte) error { return c.own.Apply(ops[:len(keys)], keys, vals, nil) }, c.own.GetBatch},
			{nameTree, tree.SetBatch, tree.GetBatch},
		}
		keys, vals := make([]string, len(d.Keys)), make([][]byte, len(d.Keys))
		for i, k := range d.Keys {
			text := appendKey(nil, k)
			keys[i], vals[i] = string(text), appendKey(text, k)
		}
		for _, b := range all {
			for lo := 0; lo < len(keys); lo += batchOf {
				hi := min(lo+batchOf, len(keys))
				if err := b.set(keys[lo:hi], vals[lo:hi]); err != nil {
					return err
				}
			}
		}
		// A round's keys are drawn before it: it is about batches, and not about the memory that keys lie in.
		of := func(label string, do func(b *batcher, keys []string, vals [][]byte) error) error {
			some, theirs := make([]string, s.Queries), make([][]byte, s.Queries)
			con := &contest.Contest{N: len(keys), Label: label, Ops: s.Queries, First: batchOf, Fresh: func(round int) {
				rng := data.RoundRand(s, round)
				for i := range some {
					at := rng.IntN(len(keys))
					some[i], theirs[i] = keys[at], vals[at]
				}
			}}
			for i := range all {
				con.Subjects = append(con.Subjects, &contest.Subject{System: all[i].name, Reference: i == 0, Do: func(ops int) error {
					for lo := 0; lo < ops; lo += batchOf {
						hi := min(lo+batchOf, ops)
						if err := do(&all[i], some[lo:hi], theirs[lo:hi]); err != nil {
							return err
						}
					}
					return nil
				}, Check: func(int) error { return nil }})
			}
			return rates(s, con)
		}
		if err := of("SetBatch", func(b *batcher, keys []string, vals [][]byte) error { return b.set(keys, vals) }); err != nil {
			return err
		}
		got, found := make([][]byte, batchOf), make([]bool, batchOf)
		return of("GetBatch", func(b *batcher, keys []string, vals [][]byte) error {
			if hits := b.get(keys, got, found); hits != len(keys) || string(got[0]) != string(vals[0]) {
				return fmt.Errorf("%d of %d keys were found, the first with %q", hits, len(keys), got[0])
			}
			return nil
		})
	})
}

func runClusterFailover(s *contest.Session) error {
	return data.ForEachSize(s, func(d *data.Dataset[uint64]) error {
		for _, beat := range []time.Duration{time.Second, 200 * time.Millisecond} {
			times, err := failovers(s, d, beat)
			if err != nil {
				return err
			}
			slices.Sort(times)
			ms := func(part float64) float64 {
				return float64(times[int(part*float64(len(times)-1)+0.5)].Microseconds()) / 1000
			}
			r := contest.NewRow(nameCluster, beat.String(), len(d.Keys))
			r.Reference = true
			r.Set(colP50, ms(0.5))
			r.Set(colP99, ms(0.99))
			s.Add(r)
			s.EndSet()
		}
		return nil
	})
}

// failovers kills leaders in turn, and returns how long each time nothing was acknowledged.
func failovers(s *contest.Session, d *data.Dataset[uint64], beat time.Duration) (times []time.Duration, err error) {
	c, err := startFilled(d, beat, s.Seed)
	if err != nil {
		return nil, err
	}
	defer c.close()
	rng := rand.New(rand.NewPCG(s.Seed, uint64(beat)))
	one, kills := setOne(1), 3*s.Rounds
	for n := range kills {
		time.Sleep(2 * beat) // leads are spread once a cluster is whole
		i, err := c.leader()
		if err != nil {
			return nil, err
		}
		at := c.servers[(i+1)%len(names)]
		w, err := dial("tcp", at.address)
		if err != nil {
			return nil, err
		}
		w.rng = rng
		c.servers[i].kill()
		began := time.Now()
		for {
			one.ask(w, d.Keys)
			if err = w.send(); err == nil {
				err = one.hear(w, d.Keys)
			}
			if err == nil {
				break
			}
			if time.Since(began) > time.Minute {
				return nil, errors.Join(errors.New("nothing was acknowledged for a minute"), err)
			}
		}
		times = append(times, time.Since(began))
		w.conn.Close()
		s.Say("%v: kill %d of %d: %v", beat, n+1, kills, times[n].Round(time.Millisecond))
		c.of[i].Join = nil // it is a member already
		if err := c.start(i); err != nil {
			return nil, err
		}
		if err := c.whole(); err != nil {
			return nil, err
		}
	}
	return times, nil
}
