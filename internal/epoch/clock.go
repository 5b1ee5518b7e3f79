package epoch

import (
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// Clock counts the generations and epochs of a tree. It is the first field of the tree's
// struct: readers look at its first words all the time.
type Clock struct {
	control  simd.PutControl
	closed   atomic.Bool
	sweeps   par.Later
	advanced atomic.Int64       // when the last generation ended
	sweep    func() (more bool) // frees retired references
	turn     func()             // ends the generation, if it is time

	// holders are the readers that hold a generation: those of even ones, and those of odd ones.
	holders [2]atomic.Int64
}

// ended is the bit of a generation that says that the tree was closed. Such a generation is
// never current, not even for a reader that has noted it after Close: the memory that it reads
// may be another tree's, and lead in circles for ever.
const ended = 1 << 63

// Start begins the first epoch and generation. sweep is called some time after each SweepLater.
// It frees retired references as far as it may, and reports whether there are more to come. turn
// ends the generation, if it is Due: it is called by goroutines that retire many values, and have
// no lock of the tree.
func (c *Clock) Start(sweep func() (more bool), turn func()) {
	c.control = simd.PutControl{Epoch: 1, Gen: 2}
	c.sweep, c.turn = sweep, turn
	c.Hasten()
}

// Control returns the words that assembly compares.
func (c *Clock) Control() *simd.PutControl { return &c.control }

// Itself returns the clock: trees have it inside.
func (c *Clock) Itself() *Clock { return c }

// Gen returns the generation, for Current.
func (c *Clock) Gen() uint64 { return atomic.LoadUint64(&c.control.Gen) }

// Current reports whether no memory that was in use in a generation has been made free for
// reuse since: all that was read meanwhile is valid. No generation is current once the tree was
// closed.
func (c *Clock) Current(gen uint64) bool {
	return c.Gen()-gen&^closedBit() <= 1 || mutant.On && mutant.Is("generation")
}

// closedBit returns the bit that Current takes out of a generation.
func closedBit() uint64 {
	if mutant.On && mutant.Is("closed generation") {
		return 0
	}
	return ended
}

// Epoch returns the present epoch.
func (c *Clock) Epoch() uint64 { return atomic.LoadUint64(&c.control.Epoch) }

// NextEpoch ends the present epoch. The snapshot of it is listed already: see Values.Begin.
func (c *Clock) NextEpoch() { atomic.AddUint64(&c.control.Epoch, 1) }

// Closed reports whether the tree was closed.
func (c *Clock) Closed() bool { return c.closed.Load() }

// End says that the tree is closed, and then ends all generations: so a change that was begun
// before fails, and one after is not begun, even where the memory has long been given to another
// tree. It reports whether the tree was open.
func (c *Clock) End() bool {
	if c.closed.Swap(true) {
		return false
	}
	atomic.AddUint64(&c.control.Gen, ended)
	return true
}

// pace is the least time between two generations in nanoseconds: a bucket of a batch takes
// less, so that it hardly ever has to be repeated.
var pace atomic.Int64

func init() { pace.Store(int64(time.Millisecond)) }

// SetPace sets the least time between two generations, of all trees, and returns a function that
// undoes it. It is for tests.
func SetPace(d time.Duration) (undo func()) {
	old := pace.Swap(int64(d))
	return func() { pace.Store(old) }
}

var start = time.Now()

// Due reports whether it is time for another generation. It does so to one caller, who ends the
// present generation, by Advance, or lets it go on for as long again.
func (c *Clock) Due() bool {
	now, last := int64(time.Since(start)), c.advanced.Load()
	return now-last >= pace.Load() && c.advanced.CompareAndSwap(last, now)
}

// Hasten makes another generation due.
func (c *Clock) Hasten() { c.advanced.Store(-1 << 62) }

// Advance ends a generation, unless another caller has done so, or a reader holds the one before:
// then it goes on, and what is retired waits.
func (c *Clock) Advance(gen uint64) {
	if !c.heldBefore(gen) || mutant.On && mutant.Is("epoch: held") {
		atomic.CompareAndSwapUint64(&c.control.Gen, gen, gen+1)
	}
}

// Hold returns the generation and keeps it current until it is given to Release. The reader must
// not wait for a writer meanwhile, since memory is not used again.
//
// One generation may end beside it, and later readers hold that which comes then. So the next end
// waits for readers that have begun before it and for no others, and generations end however many
// readers hold one.
func (c *Clock) Hold() (gen uint64) {
	for {
		gen = c.Gen()
		c.holders[gen&1].Add(1)
		if c.Gen() == gen { // else nobody may have noticed
			return gen
		}
		c.holders[gen&1].Add(-1)
	}
}

// Release ends a Hold.
func (c *Clock) Release(gen uint64) { c.holders[gen&1].Add(-1) }

// Held reports whether a reader keeps the generation from ending.
func (c *Clock) Held() bool { return c.heldBefore(c.Gen()) }

// heldBefore reports whether a reader holds the generation before one. Earlier ones are not held:
// they have ended two generations ago.
func (c *Clock) heldBefore(gen uint64) bool { return c.holders[(gen-1)&1].Load() != 0 }

// SweepLater makes sure that retired references become free even if no writer comes any more.
// The reference is in its limbo already.
func (c *Clock) SweepLater() {
	if !c.sweeps.Due() {
		c.sweeps.Do(time.Duration(max(2*int64(time.Millisecond), pace.Load())), c.sweep)
	}
}
