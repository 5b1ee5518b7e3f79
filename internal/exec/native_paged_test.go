package exec

import (
	"sort"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// blockedArgs are the arguments of blockedDown. What kernel.Blocked has behind
// its exported fields are the rows.
type blockedArgs struct {
	base, start      device.Ptr
	from, deep       uint32
	to, rows         uint32
	fan, leaves, end uint32
	row              [kernel.MaxRows]struct{ at, pageLines, levels, last uint32 }
	_                uint32
	keys             device.Ptr
	n, _             uint32
	out              device.Ptr
}

func nativeBlocked[C order.Code](d *native, params []byte) error {
	a := unpack[blockedArgs](params)
	n := int(a.n)
	out := arena.As[uint32](d.at(a.out, 4*n))
	for q, key := range arena.As[C](d.at(a.keys, n*width[C]())) {
		row, node := uint32(0), uint32(0)
		if a.start != 0 {
			row, node = a.from, arena.As[uint32](d.at(a.start+device.Ptr(4*q), 4))[0]
			if uint32(q)&^31 < a.deep {
				row++
			}
		}
		began := row
		for ; row < a.to; row++ {
			node = nativeRow(d, &a, row, node, key)
		}
		if a.to == a.rows {
			if began < a.rows {
				node += a.leaves
			}
			node = min(node, a.end)
		}
		out[q] = node
	}
	return nil
}

// nativeRow takes a query through a page of a row: line x of a page has its
// children, one level below, from line x·fanout + 1 on.
func nativeRow[C order.Code](d *native, a *blockedArgs, row, page uint32, key C) uint32 {
	r := a.row[row]
	at, child := uint32(0), uint32(0)
	for range r.levels {
		line := r.at + page*r.pageLines + at
		c := uint32(below(arena.As[C](d.at(a.base+device.Ptr(line)*simd.LineBytes, simd.LineBytes)), key))
		at, child = at<<a.fan+1+c, child<<a.fan+c
	}
	return page<<(r.levels*a.fan) + child
}

// packedArgs are the arguments of packedRank and packedFind.
type packedArgs struct {
	pages     kernel.Packed
	keys      device.Ptr
	n, _      uint32
	from, out device.Ptr
}

func nativePacked[C order.Code](d *native, params []byte, find bool) error {
	a := unpack[packedArgs](params)
	n := int(a.n)
	pages, out := arena.As[uint32](d.at(a.from, 4*n)), arena.As[uint32](d.at(a.out, 4*n))
	for q, key := range arena.As[C](d.at(a.keys, n*width[C]())) {
		rank, hit := nativePage(d, &a.pages, min(pages[q], a.pages.Last), key)
		out[q] = min(rank, a.pages.Entries)
		if find && !hit {
			out[q] = kernel.NotFound
		}
	}
	return nil
}

// nativePage returns the rank of a key in a page, and whether it is there: by
// bisection, without a look at the groups.
func nativePage[C order.Code](d *native, p *kernel.Packed, page uint32, key C) (rank uint32, hit bool) {
	entry := arena.As[uint64](d.at(p.Table+device.Ptr(page)*16, 16))
	at, bits := p.Words+device.Ptr(entry[1]>>8*8), int(entry[1]&0xff)
	words := arena.As[uint64](d.at(at, (272*bits+63)/64*8))
	keyAt := func(i int) C {
		if bits == 0 {
			return C(entry[0])
		}
		bit := (16 + i) * bits
		v := words[bit/64] >> (bit % 64)
		if bit%64+bits > 64 {
			v |= words[bit/64+1] << (64 - bit%64)
		}
		return C(entry[0] + v&(1<<bits-1))
	}
	i := sort.Search(256, func(i int) bool { return keyAt(i) >= key })
	return page*256 + uint32(i), i < 256 && keyAt(i) == key
}

// gatherArgs are the arguments of gather.
type gatherArgs struct {
	column       device.Ptr
	entries, n   uint32
	places       device.Ptr
	vals, founds device.Ptr
}

func nativeGather[V order.Code](d *native, params []byte) error {
	a := unpack[gatherArgs](params)
	n := int(a.n)
	vals, bits := arena.As[V](d.at(a.vals, n*width[V]())), arena.As[uint32](d.at(a.founds, (n+31)/32*4))
	clear(bits)
	for q, place := range arena.As[uint32](d.at(a.places, 4*n)) {
		if vals[q] = 0; place < a.entries {
			vals[q] = arena.As[V](d.at(a.column+device.Ptr(int(place)*width[V]()), width[V]()))[0]
			bits[q/32] |= 1 << (q % 32)
		}
	}
	return nil
}
