package kernel

import (
	_ "embed"
	"errors"
	"fmt"
	"math"

	"github.com/pando-index/pando/internal/device"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S sort.cu -o sort.ptx

//go:embed sort.ptx
var sortPTX string

// Sorting is the kernels of sort.cu.
var Sorting = Source{&sortPTX, []string{"sortCount32", "sortCount64", "sortFew32", "sortFew64", "sortMany32", "sortMany64", "sortOnce32", "sortOnce64", "sortSpread64", "sortMend64"}}

// MaxSort is the most keys that Sort takes: counts of keys leave one bit of a
// word free.
const MaxSort = math.MaxInt32

// ErrBadJob is the error for a sort or sum that the kernels cannot do.
var ErrBadJob = errors.New("kernel: impossible job")

// The numbers of sort.cu.
const (
	digitBits    = 8
	digits       = 1 << digitBits
	maxPasses    = 64 / digitBits
	countThreads = blockThreads * 8 // keys that a block counts at once
	// maxCounters is the most blocks that count, four for each multiprocessor
	// of an H200: each of them adds to the same counters in the end.
	maxCounters = 528
	// sortFew is the number of keys up to which small tiles are used: 4 for
	// each multiprocessor of an H200. A guess, to be measured (BenchmarkSort).
	sortFew = 512 << 10
	few     = 4 * blockThreads  // keys in a small tile
	Once    = 8 * blockThreads  // keys that one block sorts, in one launch
	many32  = 16 * blockThreads // in a large one of 32-bit keys,
	many64  = 12 * blockThreads // and of 64-bit keys
	// Temporary memory begins with a ticket counter and the counts of digits
	// for each pass, which must be 0 at the start. Two arrays of reports follow:
	// each pass clears what the next one needs.
	sortCounts = 4 * 16
	SortHead   = sortCounts + 4*digits*maxPasses // see SortJob.Cleared
	tileReport = 4 * digits                      // bytes of the reports of a tile
)

// SortJob describes a stable sort of N keys with their places (u32). It moves
// them to and fro between two pairs of arrays; Sorted returns in which they end.
// Pointers are aligned to 16 bytes. Sort changes nothing in the job.
type SortJob struct {
	KeyBits         int // 32 or 64
	From, To        int // sort by bits From to To-1 of the keys, bit 0 the lowest
	N               int // at most MaxSort
	Keys, Keys2     device.Ptr
	Places, Places2 device.Ptr
	// Implicit says that the place of key i is i, whatever Places holds: it is
	// not read then, though it may be written.
	Implicit bool
	Temp     device.Ptr // SortTemp bytes
	Cleared  bool       // the first SortHead bytes of Temp are 0 already, or will be by Clear
	// Clear is memory that is to be 0 after the sort, or before it if that needs it:
	// ClearBytes, a multiple of 16.
	Clear      device.Ptr
	ClearBytes int
	// Failed (u32) is set to 1 where keys differ in bits from To on, which are not
	// looked at otherwise; 0 where nobody asks.
	Failed device.Ptr

	tile int // keys per tile, for tests; 0: by N
}

// SortTemp returns the number of bytes of temporary memory that a sort of n keys
// needs.
func SortTemp(n, keyBits int) int {
	s := SortJob{N: n, KeyBits: keyBits}
	return SortHead + 2*s.tiles()*tileReport
}

// Passes returns how often the keys are moved. It is at least 1, even if no bit
// counts: places may have to be written.
func (s *SortJob) Passes() int { return max(1, (s.To-s.From+digitBits-1)/digitBits) }

// Sorted returns where the keys and places are after the sort: in the second
// arrays if the number of passes is odd, and nothing was to be done for no keys.
func (s *SortJob) Sorted() (keys, places device.Ptr) {
	if s.Passes()%2 == 1 {
		return s.Keys2, s.Places2
	}
	return s.Keys, s.Places
}

// tileKeys returns the number of keys per tile.
func (s *SortJob) tileKeys() int {
	switch {
	case s.tile != 0:
		return s.tile
	case s.N <= sortFew:
		return few
	case s.KeyBits == 32:
		return many32
	}
	return many64
}

func (s *SortJob) tiles() int { return (s.N + s.tileKeys() - 1) / s.tileKeys() }

func (s *SortJob) check() error {
	switch {
	case s.KeyBits != 32 && s.KeyBits != 64:
		return fmt.Errorf("%w: keys of %d bits", ErrBadJob, s.KeyBits)
	case s.From < 0 || s.To < s.From || s.To > s.KeyBits:
		return fmt.Errorf("%w: bits %d to %d of %d", ErrBadJob, s.From, s.To, s.KeyBits)
	case s.N < 0 || s.N > MaxSort:
		return fmt.Errorf("%w: %d keys", ErrBadJob, s.N)
	case (s.Keys|s.Keys2|s.Places|s.Places2|s.Temp|s.Clear|device.Ptr(s.ClearBytes))%16 != 0:
		return fmt.Errorf("%w: arrays are not aligned to 16 bytes", ErrBadJob)
	}
	return nil
}

// sortCountParams are the arguments of sortCount32 and sortCount64.
type sortCountParams struct {
	keys, counts           device.Ptr
	reports, failed        device.Ptr
	n, quads               uint32
	from, to, width, turns uint32
}

// sortPassParams are the arguments of a pass.
type sortPassParams struct {
	keys, places, keysTo, placesTo device.Ptr
	ticket, counts, reports, clear device.Ptr
	n, at, mask                    uint32
}

// Sort sorts keys and their places by some of the keys' bits. Equal ones stay in
// their order. It queues a fill, unless memory is cleared already, and one launch
// more than there are passes; for a few keys, by all their bits, one launch alone.
func (s *Set) Sort(st device.Stream, p *Params, job *SortJob) error {
	if err := job.check(); err != nil || job.N == 0 {
		return err
	}
	if job.N <= Once && job.From == 0 && job.To == job.KeyBits && job.tile == 0 {
		return s.sortOnce(st, job)
	}
	if job.ClearBytes > 0 {
		if err := st.Fill(job.Clear, 0, job.ClearBytes); err != nil {
			return err
		}
	}
	passes := job.Passes()
	width := (job.To - job.From + passes - 1) / passes
	if !job.Cleared {
		if err := st.Fill(job.Temp, 0, sortCounts+4*digits*passes); err != nil {
			return err
		}
	}
	reports := job.Temp + SortHead
	p.sortCount = sortCountParams{
		keys: job.Keys, counts: job.Temp + sortCounts, reports: reports, failed: job.Failed,
		n: uint32(job.N), quads: uint32(job.tiles() * tileReport / 16),
		from: uint32(job.From), to: uint32(job.To), width: uint32(width), turns: uint32(passes),
	}
	counters := min((job.N+countThreads-1)/countThreads, maxCounters)
	if err := st.Launch(s.kernels[pick(job.KeyBits, "sortCount32", "sortCount64")], device.Grid{Blocks: counters, Threads: blockThreads}, argsOf(&p.sortCount)); err != nil {
		return err
	}
	for i := range passes {
		if err := s.sortPass(st, p, job, i, width); err != nil {
			return err
		}
	}
	return nil
}

// sortOnce sorts a few keys by all their bits. They stay where they are: the
// number of passes would be even.
func (s *Set) sortOnce(st device.Stream, job *SortJob) error {
	p := struct {
		keys, places, placesTo, clear device.Ptr
		n, quads                      uint32
	}{job.Keys, job.Places, job.Places, job.Clear, uint32(job.N), uint32(job.ClearBytes / 16)}
	if job.Implicit {
		p.places = 0
	}
	clearing := min((int(p.quads)+4*blockThreads-1)/(4*blockThreads), maxCounters)
	return st.Launch(s.kernels[pick(job.KeyBits, "sortOnce32", "sortOnce64")], device.Grid{Blocks: 1 + clearing, Threads: blockThreads}, argsOf(&p))
}

// sortPass moves all keys and places by digit i, of width bits.
func (s *Set) sortPass(st device.Stream, p *Params, job *SortJob, i, width int) error {
	at := job.From + i*width
	tiles := job.tiles()
	a := &p.sortPass
	*a = sortPassParams{
		keys: job.Keys, places: job.Places, keysTo: job.Keys2, placesTo: job.Places2,
		ticket: job.Temp + device.Ptr(4*i), counts: job.Temp + device.Ptr(sortCounts+4*digits*i),
		reports: job.Temp + SortHead, clear: job.Temp + device.Ptr(SortHead+tiles*tileReport),
		n: uint32(job.N), at: uint32(at), mask: 1<<min(width, job.To-at) - 1,
	}
	if i%2 == 1 {
		a.keys, a.places, a.keysTo, a.placesTo = a.keysTo, a.placesTo, a.keys, a.places
		a.reports, a.clear = a.clear, a.reports
	}
	if i == 0 && job.Implicit {
		a.places = 0
	}
	if i == job.Passes()-1 {
		a.clear = 0
	}
	name := pick(job.KeyBits, "sortMany32", "sortMany64")
	if job.tileKeys() == few {
		name = pick(job.KeyBits, "sortFew32", "sortFew64")
	}
	return st.Launch(s.kernels[name], device.Grid{Blocks: tiles, Threads: blockThreads}, argsOf(a))
}

// SortSpread sets the bits (u64, which is 0) in which keys of 64 bits differ from
// the first.
func (s *Set) SortSpread(st device.Stream, keys device.Ptr, n int, bits device.Ptr) error {
	p := struct {
		keys, bits device.Ptr
		n          uint32
	}{keys, bits, uint32(n)}
	blocks := min((n+countThreads-1)/countThreads, maxCounters)
	return st.Launch(s.kernels["sortSpread64"], device.Grid{Blocks: blocks, Threads: blockThreads}, argsOf(&p))
}

// SortMend completes a sort of keys of 64 bits by their bits from bit From on:
// it puts those with the same ones in order, and everything into the other arrays.
// Where more than 32 of these were not in order, it sets Failed.
func (s *Set) SortMend(st device.Stream, job *SortJob) error {
	keys, places := job.Sorted()
	p := struct {
		keys, places, keysTo, placesTo, failed device.Ptr
		n, from                                uint32
	}{keys, places, job.Keys + job.Keys2 - keys, job.Places + job.Places2 - places, job.Failed, uint32(job.N), uint32(job.From)}
	return st.Launch(s.kernels["sortMend64"], GridOf(job.N), argsOf(&p))
}
