package kernel_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// The interpreter runs at most 8 blocks at a time, so that no tile there looks
// further back than 8 others. These tests let the last tile run alone, with
// reports of all tiles before it as if they ran, too: those up to one tile have
// added up all before them, the others know their own counts only.

// oneBlock is a stream whose launches have one block.
type oneBlock struct{ device.Stream }

func (s oneBlock) Launch(k device.Kernel, g device.Grid, params []byte) error {
	g.Blocks = min(g.Blocks, 1)
	return s.Stream.Launch(k, g, params)
}

func TestSortLooksFarBack(t *testing.T) {
	onPrimitive(t, kernel.Sorting, ordinary, 4, func(p *primitive, rng *rand.Rand) error {
		c := &sortCase[uint32]{job: kernel.SortJob{KeyBits: 32, To: 8}}
		tile := c.job.UseTiles(rng.IntN(2) == 0)
		last := 17 + rng.IntN(30)
		c.fill(last*tile+1+rng.IntN(tile), rng)
		at, err := c.lastTile(p, last, reportsOf(c.keys, tile, last, rng.IntN(last)))
		if err != nil {
			return err
		}
		next := beginnings(c.keys)
		for i, k := range c.keys {
			if got := at[next[byte(k)]]; i >= last*tile && got != uint32(i) {
				return fmt.Errorf("%v: place %d has key %d, want %d of the last tile", c, next[byte(k)], got, i)
			}
			next[byte(k)]++
		}
		return nil
	})
}

// beginnings returns where keys of each low byte begin in a sorted array.
func beginnings(keys []uint32) (at [256]uint32) {
	for _, k := range keys {
		for digit := int(byte(k)) + 1; digit < len(at); digit++ {
			at[digit]++
		}
	}
	return at
}

// reportsOf returns what tiles before the last report, of which those up to known
// have added up all before them.
func reportsOf(keys []uint32, tile, last, known int) []uint32 {
	words := make([]uint32, 256*last)
	sums := beginnings(keys)
	for i, k := range keys[:last*tile] {
		words[i/tile*256+int(byte(k))]++
	}
	for i := range words {
		sums[i%256] += words[i]
		words[i] = kernel.OwnReport(words[i])
		if i/256 <= known {
			words[i] = kernel.ReportUpTo(sums[i%256])
		}
	}
	return words
}

// lastTile runs the last tile of a pass alone, and returns the places it writes.
func (c *sortCase[C]) lastTile(p *primitive, last int, reports []uint32) ([]uint32, error) {
	job := c.job
	job.Implicit = true
	for at, n := range map[*device.Ptr]int{&job.Keys: c.job.N, &job.Keys2: c.job.N, &job.Places2: c.job.N, &job.Temp: c.job.TempBytes() / 4} {
		var err error
		if *at, err = p.room(4 * n); err != nil {
			return nil, err
		}
	}
	places := make([]uint32, c.job.N)
	return places, errors.Join(
		p.s.CopyIn(job.Keys, arena.Bytes(c.keys)), p.s.CopyIn(job.Temp, arena.Bytes([]uint32{uint32(last)})),
		p.s.CopyIn(job.Temp+kernel.SortHead, arena.Bytes(reports)),
		p.set.LastSortTile(oneBlock{p.s}, &p.params, &job),
		p.s.CopyOut(arena.Bytes(places), job.Places2), p.s.Synchronize())
}

func TestSumLooksFarBack(t *testing.T) {
	onPrimitive(t, kernel.Summing, ordinary, 8, func(p *primitive, rng *rand.Rand) error {
		last := 20 + rng.IntN(100)
		known := rng.IntN(last)
		in := make([]uint32, last*kernel.SumTile+1+rng.IntN(kernel.SumTile))
		reports, sum := make([]uint64, last), uint64(0)
		for i := range in {
			in[i] = rng.Uint32()
			if tile := i / kernel.SumTile; tile < last {
				reports[tile] += uint64(in[i])
				sum += uint64(in[i])
			}
		}
		for i, upTo := 0, uint64(0); i < last; i++ {
			upTo += reports[i]
			reports[i] = kernel.OwnReport(reports[i])
			if i <= known {
				reports[i] = kernel.ReportUpTo(upTo)
			}
		}
		from, err1 := p.room(4 * len(in))
		to, err2 := p.room(8 * (len(in) + 1))
		temp, err3 := p.room(kernel.SumTemp(len(in)))
		out := make([]uint64, len(in)+1)
		if err := errors.Join(err1, err2, err3, p.s.CopyIn(from, arena.Bytes(in)), p.s.CopyIn(temp, arena.Bytes([]uint32{uint32(last)})),
			p.s.CopyIn(temp+kernel.SumHead, arena.Bytes(reports)),
			p.set.LastSumTile(oneBlock{p.s}, from, len(in), to, temp),
			p.s.CopyOut(arena.Bytes(out), to), p.s.Synchronize()); err != nil {
			return err
		}
		for i := last * kernel.SumTile; i < len(in); i++ {
			if out[i] != sum {
				return fmt.Errorf("%d tiles, %d know all before them: sum %d is %d, want %d", last, known+1, i, out[i], sum)
			}
			sum += uint64(in[i])
		}
		return nil
	})
}
