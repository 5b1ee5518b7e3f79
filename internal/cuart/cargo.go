package cuart

import (
	"errors"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/par"
)

// Span is memory of both sides.
type Span struct {
	Host []byte
	At   device.Ptr
	room int
}

// ensure makes a span at least bytes long, on the host too if host is true.
func (s *Span) ensure(dev device.Device, bytes int, host bool) (err error) {
	if bytes > s.room {
		if err := s.free(dev); err != nil {
			return err
		}
		bytes += bytes / 4
		if s.At, err = dev.Alloc(device.Aligned(bytes)); err != nil {
			return err
		}
		s.room = bytes
	}
	if host && s.Host == nil {
		s.Host, err = dev.HostAlloc(device.Aligned(s.room))
	}
	return err
}

func (s *Span) free(dev device.Device) (err error) {
	if s.At != 0 {
		err = dev.Free(s.At)
	}
	if s.Host != nil {
		err = errors.Join(err, dev.HostFree(s.Host))
	}
	*s = Span{}
	return err
}

// cargo is memory of operations that travel together.
type cargo struct{ bytes, offsets, vals, kinds Span }

func (c *cargo) free(dev device.Device) error {
	return errors.Join(c.bytes.free(dev), c.offsets.free(dev), c.vals.free(dev), c.kinds.free(dev))
}

// load queues copies of operations [lo, hi) in a stream, and returns them as they are
// on the device.
func (p *Port) load(to *cargo, st device.Stream, c *Changes, lo, hi int) (*Ops, error) {
	ops := &Ops{Kind: c.Kind}
	err := p.loadKeys(to, st, &c.Keys, lo, hi, ops)
	if width := p.tree.run.Bits / 8; err == nil && c.Vals != nil {
		ops.Vals, err = p.send(&to.vals, st, c.Vals[lo*width:hi*width])
	}
	if err == nil && c.Kinds != nil {
		ops.Kinds, err = p.send(&to.kinds, st, arena.Bytes(c.Kinds[lo:hi]))
	}
	ops.Keys.N = uint32(hi - lo)
	return ops, err
}

// loadKeys queues copies of strings. Where all are of one length, their offsets stay.
func (p *Port) loadKeys(to *cargo, st device.Stream, keys *packing.Strings, lo, hi int, ops *Ops) (err error) {
	if keys.Offsets == nil {
		return p.gather(to, st, keys, lo, hi, ops)
	}
	offsets := keys.Offsets[lo : hi+1]
	from := offsets[0]
	if ops.Keys.Bytes, err = p.send(&to.bytes, st, keys.Data[from:offsets[hi-lo]]); err != nil {
		return err
	}
	if width := p.spacing(offsets); width > 0 {
		ops.Keys.Width = uint32(width)
		return nil
	}
	ops.Keys.Bytes -= device.Ptr(from) // offsets count from the first string of the batch
	ops.Keys.Offsets, err = p.send(&to.offsets, st, arena.Bytes(offsets))
	return err
}

// spacing returns the distance of offsets, at least two, if it is always the same, and
// else 0. All workers look.
func (p *Port) spacing(offsets []int32) int {
	const piece = 32 << 10
	width, n := int(offsets[1]-offsets[0]), len(offsets)-1
	if width*n != int(offsets[n]-offsets[0]) {
		return 0
	}
	var uneven atomic.Bool
	par.Run(p.workers, (n+piece-1)/piece, par.Func(func(p int) {
		if uneven.Load() {
			return
		}
		if w, _ := packing.Spacing(offsets[p*piece : min((p+1)*piece, n)+1]); w != width {
			uneven.Store(true)
		}
	}))
	if uneven.Load() {
		return 0
	}
	return width
}

// gather packs Go strings, a part by each worker, and queues copies of them.
func (p *Port) gather(to *cargo, st device.Stream, keys *packing.Strings, lo, hi int, ops *Ops) error {
	const piece = 8 << 10
	n := hi - lo
	if err := to.offsets.ensure(p.tree.dev, 4*(n+1), true); err != nil {
		return err
	}
	offsets, width, at := arena.As[uint32](to.offsets.Host), p.Takes(keys.At(lo)), 0
	for i := range n {
		offsets[i] = uint32(at)
		takes := p.Takes(keys.At(lo + i))
		if at += takes; takes != width {
			width = 0
		}
	}
	offsets[n] = uint32(at)
	if err := to.bytes.ensure(p.tree.dev, at+8, true); err != nil {
		return err
	}
	par.Run(p.workers, (n+piece-1)/piece, par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, n); i++ {
			copy(to.bytes.Host[offsets[i]:offsets[i+1]], keys.At(lo+i))
		}
	}))
	ops.Keys.Bytes = to.bytes.At
	var err error
	if at > 0 {
		err = st.CopyIn(to.bytes.At, to.bytes.Host[:at])
	}
	if ops.Keys.Width = uint32(width); width > 0 {
		return err
	}
	ops.Keys.Offsets = to.offsets.At
	return errors.Join(err, st.CopyIn(to.offsets.At, to.offsets.Host[:4*(n+1)]))
}

// Takes returns the bytes of a string that travel: of one that is too long as many as
// tell so.
func (p *Port) Takes(key string) int { return min(len(key), p.tree.longest+1) }

// send queues a copy of host memory, by way of page-locked memory where it is not.
func (p *Port) send(s *Span, st device.Stream, from []byte) (device.Ptr, error) {
	direct := device.Shared(from)
	if err := s.ensure(p.tree.dev, len(from)+8, !direct); err != nil || len(from) == 0 {
		return s.At, err
	}
	if !direct {
		copy(s.Host, from)
		from = s.Host[:len(from)]
	}
	return s.At, st.CopyIn(s.At, from)
}
