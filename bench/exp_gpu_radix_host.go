package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/radix"
)

var (
	gpuRadixHost = &experiment{
		name:     "gpu-radix-host",
		about:    "lookups in the GPU's radix tree of strings from page-locked host memory and back, by the size of buckets, and with its leaves in host memory",
		per:      "one key, by the host's clock; the limit by events",
		caseName: "keys",
		sizes:    []int{16 * mega},
		queries:  16 * mega,
		extra:    gigaColumns,
		run:      runGPURadixHost,
	}
	gpuRadixLong = &experiment{
		name:     "gpu-radix-long",
		about:    "lookups in the GPU's radix tree by the share of long keys among keys of 32 bytes, in the paper's three ways, from page-locked host memory and back",
		figure:   "fig. 13 of the " + paper21,
		per:      "one key looked up, copies to the GPU and back included",
		caseName: "long keys",
		sizes:    []int{1 * mega},
		queries:  4 * mega,
		extra:    gigaColumns,
		run:      runGPURadixLong,
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
var radixBuckets = []int{128 * kilo, 256 * kilo, 512 * kilo}

func runGPURadixHost(s *session) error {
	return eachRadix(s, radixKinds, func(r *radixRig, n int) error { return r.fromHost(n) })
}

// eachRadix makes keys of some kinds, for each size.
func eachRadix(s *session, kinds []textKind, do func(r *radixRig, n int) error) error {
	err := withGPU(s, 0, func(g *gpuRig) error {
		for _, n := range s.sizes {
			for _, kind := range kinds {
				debug.FreeOSMemory() // frees the memory of the previous ones
				perEntry := kind.bytes + stringHeader + textValue
				if !s.room(kind.label, n, 3*perEntry+float64(s.queries)/float64(n)*(perEntry+32), "use a smaller --n") {
					continue
				}
				s.say("making %s keys, %s ...", sizeText(n), kind.label)
				const step = 1 << 30 // all are in the tree but for the first
				r := &radixRig{g: g, label: kind.label, keys: kind.keys(n+1, s.seed), step: step}
				if err := g.clearTree(n, do(r, n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.setGigas()
	return err
}

// opened calls do with a desk before a tree of all keys.
func (r *radixRig) opened(opts cuart.Options, do func(*cuart.Desk, *cuart.Tree) error) error {
	tree, err := r.open(opts)
	if err != nil {
		return err
	}
	desk := cuart.NewDesk(tree, allCores())
	err = do(desk, tree)
	return errors.Join(err, desk.Close(), tree.Close())
}

// fromHost measures searches from host memory.
func (r *radixRig) fromHost(n int) (err error) {
	defer func() { err = r.finish(n, err) }()
	s := r.g.s
	if err := r.draw(s.queries, false); err != nil {
		return err
	}
	c := &contest{n: n, threads: allCores(), label: r.label, ops: s.queries}
	crossing := func(ops int) (in, out int) { return max(int(r.mean*float64(ops))&^3, 4), 8*ops + bitBytes(ops) }
	return r.opened(cuart.Options{}, func(desk *cuart.Desk, tree *cuart.Tree) error {
		c.subjects = []*subject{r.hostToHost(rowHost, desk, false, 0, nil), r.hostToHost(rowHostTile, desk, true, 0, nil)}
		c.subjects[0].reference = true
		for _, size := range radixBuckets {
			c.subjects = append(c.subjects, r.hostToHost(fmt.Sprintf("%s, buckets of %s", rowHost, sizeText(size)), desk, false, size, nil))
		}
		c.subjects = append(c.subjects, r.resident(rowThread, tree, r.batch.on, false))
		far := cuart.Options{Longest: 1, Long: cuart.LongHost, HostRoom: 16 << 30} // all leaves are those of long keys
		return r.opened(far, func(desk *cuart.Desk, tree *cuart.Tree) error {
			c.subjects = append(c.subjects, r.resident(rowFarResident, tree, r.batch.on, true), r.hostToHost(rowFarHost, desk, true, 0, nil))
			return withCopyLimit(r.g, crossing, copyBuffer, func(l *copyLimit) error {
				if l != nil {
					c.subjects = append(c.subjects, l.subject())
				}
				return s.compete(c)
			})
		})
	})
}

// radixLong are the keys: shares of long ones, in percent, of two lengths.
func radixLong() (kinds []textKind) {
	for _, c := range []struct {
		length int
		shares []int
	}{{300, longShares}, {2000, longShares[1:4]}} {
		for _, percent := range c.shares {
			bytes := 32 + float64(percent)*float64(c.length-32)/100
			kinds = append(kinds, textKind{fmt.Sprintf("%d %% of %d bytes", percent, c.length), bytes, func(n int, seed uint64) []string {
				return someLong(n, percent, c.length, seed)
			}})
		}
	}
	return kinds
}

// someLong returns keys of 32 bytes, of which some are longer.
func someLong(n, percent, length int, seed uint64) []string {
	keys, rng := randomTexts(n, 32, seed), newRand(seed, streamTexts)
	for i, k := range keys {
		if rng.IntN(100) < percent {
			keys[i] = k + strings.Repeat("x", length-len(k))
		}
	}
	return keys
}

func runGPURadixLong(s *session) error {
	return eachRadix(s, radixLong(), func(r *radixRig, n int) error { return r.longKeys(n) })
}

// longKeys measures the three ways.
func (r *radixRig) longKeys(n int) (err error) {
	defer func() { err = r.finish(n, err) }()
	s := r.g.s
	if err := r.draw(s.queries, false); err != nil {
		return err
	}
	cpu := radix.New(0)
	defer cpu.Close()
	for i, k := range r.keys {
		if len(k) > 32 {
			cpu.Set(k, valueOf(uint64(i)))
		}
	}
	c := &contest{n: n, threads: allCores(), label: r.label, ops: s.queries}
	add := func(name string, long cuart.Long, next func() error) error {
		opts := cuart.Options{Longest: 32, Long: long, HostRoom: 8 << 30}
		return r.opened(opts, func(desk *cuart.Desk, tree *cuart.Tree) error {
			sub := r.hostToHost(name, desk, true, 0, cpu)
			sub.bytes, sub.reference = float64(tree.Bytes()+tree.HostBytes())/float64(n), long == cuart.LongLeft
			c.subjects = append(c.subjects, sub)
			return next()
		})
	}
	return add(rowLongLeft, cuart.LongLeft, func() error {
		return add(rowLongHost, cuart.LongHost, func() error {
			return add(rowLongDevice, cuart.LongDevice, func() error { return s.compete(c) })
		})
	})
}
