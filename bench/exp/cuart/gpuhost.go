package cuart

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/radix"
)

var (
	gpuRadixHost = &contest.Experiment{
		Name:     "gpu-radix-host",
		About:    "lookups in the GPU's radix tree of strings from page-locked host memory and back, by the size of buckets, and with its leaves in host memory",
		Per:      "one key, by the host's clock; the limit by events",
		CaseName: "keys",
		Sizes:    []int{16 * contest.Mega},
		Queries:  16 * contest.Mega,
		Extra:    contest.GigaColumns,
		Run:      runGPURadixHost,
	}
	gpuRadixLong = &contest.Experiment{
		Name:     "gpu-radix-long",
		About:    "lookups in the GPU's radix tree by the share of long keys among keys of 32 bytes, in the paper's three ways, from page-locked host memory and back",
		Figure:   "fig. 13 of the " + paper21,
		Per:      "one key looked up, copies to the GPU and back included",
		CaseName: "long keys",
		Sizes:    []int{1 * contest.Mega},
		Queries:  4 * contest.Mega,
		Extra:    contest.GigaColumns,
		Run:      runGPURadixLong,
	}
)

// Names of their rows.
const (
	rowFarResident = nameRadixGPU + ", leaves in host memory, keys in the GPU's"
	rowFarHost     = nameRadixGPU + ", leaves in host memory, host to host"
	rowLongLeft    = nameRadixGPU + ", long keys on the CPU"
	rowLongHost    = nameRadixGPU + ", long keys in host memory"
	rowLongDevice  = nameRadixGPU + ", long keys in the GPU's memory"
)

// radixBuckets are the most strings of a bucket.
var radixBuckets = []int{128 * contest.Kilo, 256 * contest.Kilo, 512 * contest.Kilo}

func runGPURadixHost(s *contest.Session) error {
	return eachRadix(s, radixKinds, func(r *radixRig, n int) error { return r.fromHost(n) })
}

// eachRadix makes keys of some kinds, for each size.
func eachRadix(s *contest.Session, kinds []data.TextKind, do func(r *radixRig, n int) error) error {
	err := rig.With(s, 0, func(g *rig.Rig) error {
		for _, n := range s.Sizes {
			for _, kind := range kinds {
				debug.FreeOSMemory() // frees the memory of the previous ones
				perEntry := kind.Bytes + data.StringHeader + data.TextValue
				if !s.Room(kind.Label, n, 3*perEntry+float64(s.Queries)/float64(n)*(perEntry+32), "use a smaller --n") {
					continue
				}
				s.Say("making %s keys, %s ...", contest.SizeText(n), kind.Label)
				const step = 1 << 30 // all are in the tree but for the first
				r := &radixRig{g: g, label: kind.Label, keys: kind.Keys(n+1, s.Seed), step: step}
				if err := g.ClearTree(n, do(r, n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.SetGigas()
	return err
}

// opened calls do with a port before a tree of all keys.
func (r *radixRig) opened(opts cuart.Options, do func(*cuart.Port, *cuart.Tree) error) error {
	tree, err := r.open(opts)
	if err != nil {
		return err
	}
	port := cuart.NewPort(tree, contest.AllCores())
	err = do(port, tree)
	return errors.Join(err, port.Close(), tree.Close())
}

// fromHost measures searches from host memory.
func (r *radixRig) fromHost(n int) (err error) {
	defer func() { err = r.finish(n, err) }()
	s := r.g.S
	if err := r.draw(s.Queries, false); err != nil {
		return err
	}
	c := &contest.Contest{N: n, Threads: contest.AllCores(), Label: r.label, Ops: s.Queries}
	crossing := func(ops int) (in, out int) { return max(int(r.mean*float64(ops))&^3, 4), 8*ops + rig.BitBytes(ops) }
	return r.opened(cuart.Options{}, func(port *cuart.Port, tree *cuart.Tree) error {
		c.Subjects = []*contest.Subject{r.hostToHost(rowHost, port, false, 0, nil), r.hostToHost(rowHostTile, port, true, 0, nil)}
		c.Subjects[0].Reference = true
		for _, size := range radixBuckets {
			c.Subjects = append(c.Subjects, r.hostToHost(fmt.Sprintf("%s, buckets of %s", rowHost, contest.SizeText(size)), port, false, size, nil))
		}
		c.Subjects = append(c.Subjects, r.resident(rowThread, tree, r.batch.on, false))
		far := cuart.Options{Longest: 1, Long: cuart.LongHost, HostRoom: 16 << 30} // all leaves are those of long keys
		return r.opened(far, func(port *cuart.Port, tree *cuart.Tree) error {
			c.Subjects = append(c.Subjects, r.resident(rowFarResident, tree, r.batch.on, true), r.hostToHost(rowFarHost, port, true, 0, nil))
			return rig.WithCopyLimit(r.g, crossing, rig.CopyBuffer, func(l *rig.CopyLimit) error {
				if l != nil {
					c.Subjects = append(c.Subjects, l.Subject())
				}
				return s.Compete(c)
			})
		})
	})
}

// radixLong are the keys: shares of long ones, in percent, of two lengths.
func radixLong() (kinds []data.TextKind) {
	for _, c := range []struct {
		length int
		shares []int
	}{{300, longShares}, {2000, longShares[1:4]}} {
		for _, percent := range c.shares {
			bytes := 32 + float64(percent)*float64(c.length-32)/100
			kinds = append(kinds, data.TextKind{Label: fmt.Sprintf("%d %% of %d bytes", percent, c.length), Bytes: bytes, Keys: func(n int, seed uint64) []string {
				return someLong(n, percent, c.length, seed)
			}})
		}
	}
	return kinds
}

// someLong returns keys of 32 bytes, of which some are longer.
func someLong(n, percent, length int, seed uint64) []string {
	keys, rng := randomTexts(n, 32, seed), data.NewRand(seed, data.StreamTexts)
	for i, k := range keys {
		if rng.IntN(100) < percent {
			keys[i] = k + strings.Repeat("x", length-len(k))
		}
	}
	return keys
}

func runGPURadixLong(s *contest.Session) error {
	return eachRadix(s, radixLong(), func(r *radixRig, n int) error { return r.longKeys(n) })
}

// longKeys measures the three ways.
func (r *radixRig) longKeys(n int) (err error) {
	defer func() { err = r.finish(n, err) }()
	s := r.g.S
	if err := r.draw(s.Queries, false); err != nil {
		return err
	}
	cpu := radix.New(0)
	defer cpu.Close()
	for i, k := range r.keys {
		if len(k) > 32 {
			cpu.Set(k, data.ValueOf(uint64(i)))
		}
	}
	c := &contest.Contest{N: n, Threads: contest.AllCores(), Label: r.label, Ops: s.Queries}
	add := func(name string, long cuart.Long, next func() error) error {
		opts := cuart.Options{Longest: 32, Long: long, HostRoom: 8 << 30}
		return r.opened(opts, func(port *cuart.Port, tree *cuart.Tree) error {
			sub := r.hostToHost(name, port, true, 0, cpu)
			sub.Bytes, sub.Reference = float64(tree.Bytes()+tree.HostBytes())/float64(n), long == cuart.LongLeft
			c.Subjects = append(c.Subjects, sub)
			return next()
		})
	}
	return add(rowLongLeft, cuart.LongLeft, func() error {
		return add(rowLongHost, cuart.LongHost, func() error {
			return add(rowLongDevice, cuart.LongDevice, func() error { return s.Compete(c) })
		})
	})
}
