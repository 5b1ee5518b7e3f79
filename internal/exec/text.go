package exec

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/par"
)

// Strings is a list of strings, as blocked.Text is one: it answers on the CPU,
// and goes on where a GPU has brought a search by partial keys.
type Strings interface {
	Find(keys []string, ranks []int)
	Rank(keys []string, ranks []int)
	Confirm(keys []string, ranks []int)
	ConfirmRank(keys []string, ranks []int)
	Loose() bool
	Sound() error
	DeviceParts() [4][]byte
	OnDevice(at [4]device.Ptr) (kernel.Text, error)
}

// Text runs batches of string keys on a GPU. Strings travel to it packed, a
// bucket at a time; each worker fills a bucket, waits for it, and takes its
// results, so that with several workers copies, kernels and the CPU's work
// overlap. What the GPU cannot do, for whatever reason, the CPU does.
type Text struct {
	list    Strings
	workers int
	dev     device.Device
	set     *kernel.Set
	image   kernel.Text
	held    int64
	strings bool // the device holds them, too
	slots   chan *textSlot
	open    []*textSlot
	down    atomic.Pointer[error]
	once    sync.Once
	forget  runtime.Cleanup
}

// A bucket of strings: so many at most, and so many bytes. Longer ones than
// longestText stay with the CPU, as few as there are of them.
const (
	textBucket  = 32 << 10
	textBytes   = 2 << 20
	textSlots   = 8
	longestText = 1 << 10
)

// textSlot is room for a bucket, here and on the device.
type textSlot struct {
	in, out       []byte // page-locked: offsets and strings; results
	devIn, devOut device.Ptr
	stream        device.Stream
	params        kernel.Params
	left          []int // queries that the CPU is to look at
	keys          []string
	ranks         []int
}

const textIn = 4*(textBucket+1) + textBytes

// TextNeed is the device memory for a list with so many workers: all of it, or
// without the strings themselves.
func TextNeed(list Strings, workers int, withBytes bool) (need int64) {
	for i, p := range list.DeviceParts() {
		if i < 3 || withBytes {
			need += int64(len(p))
		}
	}
	return need + int64(min(workers, textSlots)*(textIn+4*textBucket))
}

// NewText copies a list to a GPU, its strings too where there is room within
// free bytes. The device is the schedule's from then on, also if there is an
// error.
func NewText(list Strings, workers int, dev device.Device, free int64) (*Text, error) {
	t := &Text{list: list, workers: workers, dev: dev, slots: make(chan *textSlot, textSlots)}
	if err := t.prepare(free); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	t.forget = runtime.AddCleanup(t, func(d device.Device) { d.Close() }, dev)
	return t, nil
}

func (t *Text) prepare(free int64) error {
	if err := t.list.Sound(); err != nil {
		return err
	}
	withBytes := TextNeed(t.list, t.workers, true) <= free
	t.strings = withBytes
	if need := TextNeed(t.list, t.workers, withBytes); need > free {
		return fmt.Errorf("%w: needs %d bytes, %d are free", device.ErrOutOfMemory, need, free)
	}
	set, err := kernel.LoadOnly(t.dev, kernel.TextSource)
	if err != nil {
		return err
	}
	t.set = set
	for range min(t.workers, textSlots) {
		s, err := t.newSlot()
		if err != nil {
			return err
		}
		t.open = append(t.open, s)
		t.slots <- s
	}
	return t.upload(withBytes)
}

func (t *Text) newSlot() (*textSlot, error) {
	s := &textSlot{keys: make([]string, 0, textBucket), ranks: make([]int, 0, textBucket)}
	var errs [5]error
	s.in, errs[0] = t.dev.HostAlloc(textIn)
	s.out, errs[1] = t.dev.HostAlloc(4 * textBucket)
	s.devIn, errs[2] = t.dev.Alloc(textIn)
	s.devOut, errs[3] = t.dev.Alloc(4 * textBucket)
	s.stream, errs[4] = t.dev.NewStream()
	return s, errors.Join(errs[:]...)
}

// upload copies the list.
func (t *Text) upload(withBytes bool) error {
	var at [4]device.Ptr
	stream := t.open[0].stream
	for i, part := range t.list.DeviceParts() {
		if i == 3 && !withBytes || len(part) == 0 {
			continue
		}
		p, err := t.dev.Alloc(len(part))
		if err != nil {
			return err
		}
		registered := t.dev.Register(part) == nil
		err = stream.CopyIn(p, part)
		if err == nil {
			err = stream.Synchronize()
		}
		if registered {
			err = errors.Join(err, t.dev.Unregister(part))
		}
		if err != nil {
			return err
		}
		at[i] = p
		t.held += int64(len(part))
	}
	image, err := t.list.OnDevice(at)
	image.Longest = longestText
	t.image = image
	return err
}

// Held is the bytes of the list that the device has, and whether the strings
// themselves are among them.
func (t *Text) Held() (bytes int64, strings bool) { return t.held, t.strings }

// Find sets ranks[i] to the place of the first string equal to keys[i], or -1.
func (t *Text) Find(keys []string, ranks []int) { t.run(keys, ranks, true) }

// Rank sets ranks[i] to the number of strings below keys[i].
func (t *Text) Rank(keys []string, ranks []int) { t.run(keys, ranks, false) }

func (t *Text) run(keys []string, ranks []int, find bool) {
	workers := min(t.workers, textSlots)
	piece := min(max(len(keys)/(2*workers), minShared), textBucket)
	par.Run(workers, (len(keys)+piece-1)/piece, par.Func(func(p int) {
		lo, hi := p*piece, min((p+1)*piece, len(keys))
		t.answer(keys[lo:hi], ranks[lo:hi], find)
	}))
}

// answer answers up to a bucket of queries.
func (t *Text) answer(keys []string, ranks []int, find bool) {
	if t.down.Load() == nil {
		err := t.inSlot(keys, ranks, find)
		if err == nil {
			return
		}
		t.fail(err)
	}
	if find {
		t.list.Find(keys, ranks)
		return
	}
	t.list.Rank(keys, ranks)
}

// inSlot answers queries on the GPU as soon as there is room for a bucket.
func (t *Text) inSlot(keys []string, ranks []int, find bool) error {
	s := <-t.slots
	defer func() { t.slots <- s }()
	if err := t.Down(); err != nil { // closed while waiting
		return err
	}
	return t.onGPU(s, keys, ranks, find)
}

// onGPU sends queries, in more than one go where their bytes are too many.
func (t *Text) onGPU(s *textSlot, keys []string, ranks []int, find bool) error {
	for len(keys) > 0 {
		n := s.fill(keys)
		bytes := int(arena.As[uint32](s.in)[n]) + 4*(n+1)
		if err := s.stream.CopyIn(s.devIn, s.in[:bytes]); err != nil {
			return err
		}
		strings := s.devIn + device.Ptr(4*(n+1))
		if err := t.set.TextFind(s.stream, &s.params, &t.image, strings, s.devIn, n, s.devOut); err != nil {
			return err
		}
		if err := s.stream.CopyOut(s.out[:4*n], s.devOut); err != nil {
			return err
		}
		if err := s.stream.Synchronize(); err != nil {
			return err
		}
		t.take(s, keys[:n], ranks[:n], find)
		keys, ranks = keys[n:], ranks[n:]
	}
	return nil
}

// fill packs strings into a bucket: as many as fit, one at least. Of strings
// that are too long nothing is packed.
func (s *textSlot) fill(keys []string) (n int) {
	n = min(len(keys), textBucket)
	bytes := 0
	for i, k := range keys[:n] {
		if len(k) > longestText {
			continue
		}
		if bytes += len(k); bytes > textBytes {
			n = i
			break
		}
	}
	offsets, strings, at := arena.As[uint32](s.in)[:n+1], s.in[4*(n+1):], 0
	for i, k := range keys[:n] {
		offsets[i] = uint32(at)
		if len(k) <= longestText {
			at += copy(strings[at:], k)
		}
	}
	offsets[n] = uint32(at)
	return n
}

// take turns the GPU's results into places or ranks. Where they are not sure,
// the CPU goes on.
func (t *Text) take(s *textSlot, keys []string, ranks []int, find bool) {
	left, sent, loose := s.left[:0], s.keys[:0], s.ranks[:0]
	settled := find && !t.list.Loose()
	for i, v := range arena.As[uint32](s.out)[:len(keys)] {
		at := int(v &^ (kernel.TextEqual | kernel.TextUnsure))
		long := len(keys[i]) > longestText
		switch {
		case v&kernel.TextEqual != 0 && !long:
			ranks[i] = at
		case settled && v&kernel.TextUnsure == 0 && !long:
			ranks[i] = -1
		default:
			if long { // what the GPU looked for is not what was asked
				at = 0
			}
			left, sent, loose = append(left, i), append(sent, keys[i]), append(loose, at)
		}
	}
	t.confirm(sent, loose, find)
	for i, q := range left {
		ranks[q] = loose[i]
	}
	clear(sent) // strings are not ours to keep
	s.left, s.keys, s.ranks = left, sent[:0], loose[:0]
}

// confirm has the CPU go on. Searches that the GPU did not begin are its own.
func (t *Text) confirm(keys []string, ranks []int, find bool) {
	for i, k := range keys {
		if len(k) > longestText {
			if find {
				t.list.Find(keys[i:i+1], ranks[i:i+1])
			} else {
				t.list.Rank(keys[i:i+1], ranks[i:i+1])
			}
		}
	}
	for lo := 0; lo < len(keys); {
		hi := lo
		for hi < len(keys) && len(keys[hi]) <= longestText {
			hi++
		}
		if find {
			t.list.Confirm(keys[lo:hi], ranks[lo:hi])
		} else {
			t.list.ConfirmRank(keys[lo:hi], ranks[lo:hi])
		}
		lo = hi + 1
	}
}

// Crossover gives the least batch, a power of two, from which on the GPU
// answers faster than onCPU; 0 if there is none up to all of sample.
func (t *Text) Crossover(sample []string, onCPU func(keys []string, ranks []int)) int {
	ranks := make([]int, len(sample))
	best := 0
	for n := len(sample); n >= 1<<10; n /= 2 {
		here := BestOf(func() { onCPU(sample[:n], ranks) })
		there := BestOf(func() { t.Find(sample[:n], ranks) })
		if there >= here || t.Down() != nil {
			break
		}
		best = n
	}
	return best
}

// Down gives the reason why the GPU is no longer used, or nil.
func (t *Text) Down() error {
	if e := t.down.Load(); e != nil {
		return *e
	}
	return nil
}

// fail gives the GPU up, and says so the first time.
func (t *Text) fail(err error) {
	if t.down.CompareAndSwap(nil, &err) {
		slog.Warn("pando: the GPU failed, the CPU answers from now on", "device", t.dev.Info().Name, "error", err)
	}
}

// Close frees what the schedule holds on the device. Batches under way end
// first, or go on on the CPU.
func (t *Text) Close() (err error) {
	t.once.Do(func() {
		t.forget.Stop()
		closed := errors.New("closed")
		t.down.CompareAndSwap(nil, &closed)
		for range t.open { // wait for those that are out
			<-t.slots
		}
		for _, s := range t.open {
			t.slots <- s
		}
		err = t.dev.Close()
	})
	return err
}
