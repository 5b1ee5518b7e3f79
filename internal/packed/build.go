package packed

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// piecePages is the pages that a worker packs at a time: 512K keys.
const piecePages = 2048

// survey is the result of the first pass over the keys: it reads two keys of
// each page, the first and the last.
type survey[C simd.Code] struct {
	table    []simd.PackedEntry
	greatest []C // key of each page
	words    uint64
}

// Survey returns the bytes that Build would take for these keys,
// which must be sorted: the first and the last key of each page tell.
func Survey[C simd.Code](src layout.Source[C], cfg implicit.Config) (int64, error) {
	s, err := surveyKeys(src, cfg)
	if err != nil {
		return 0, err
	}
	plan, err := Plan[C](src.Len, s.bytes(), cfg)
	if err != nil {
		return 0, err
	}
	return arena.Need(plan.Sizes, pageMode(plan.Sizes, cfg.Pages))
}

// bytes is the size of the pages' segment.
func (s *survey[C]) bytes() int { return int(s.words)*8 + tailBytes }

// surveyKeys surveys the keys.
func surveyKeys[C simd.Code](src layout.Source[C], cfg implicit.Config) (*survey[C], error) {
	if _, err := Plan[C](src.Len, tailBytes, cfg); err != nil {
		return nil, err
	}
	count := countOf(src.Len)
	s := &survey[C]{table: make([]simd.PackedEntry, count), greatest: make([]C, count)}
	if src.Len == 0 {
		return s, nil
	}
	var unsorted atomic.Bool
	par.Run(par.Workers(cfg.Workers), (count+piecePages-1)/piecePages, par.Func(func(p int) {
		if !unsorted.Load() && !s.ends(src, p*piecePages, min((p+1)*piecePages, count)) {
			unsorted.Store(true)
		}
	}))
	if unsorted.Load() {
		return nil, layout.ErrUnsorted
	}
	for i := range s.table {
		width := s.table[i].At
		s.table[i].At |= s.words << 8
		s.words += wordsOf(width)
	}
	return s, nil
}

// ends sets the least key and the width of pages [lo, hi). It returns false if
// a page ends with a lower key than it begins with.
func (s *survey[C]) ends(src layout.Source[C], lo, hi int) bool {
	buf := make([]C, 1)
	key := func(i int) C {
		if src.Codes != nil {
			return src.Codes[i]
		}
		src.Encode(buf, i)
		return buf[0]
	}
	for p := lo; p < hi; p++ {
		first, last := key(p*simd.PackedPage), key(min((p+1)*simd.PackedPage, src.Len)-1)
		if last < first {
			return false
		}
		s.greatest[p] = last
		s.table[p] = simd.PackedEntry{Min: uint64(first), At: widthOf(uint64(last - first))}
	}
	return true
}

// Build makes a tree in two passes: one that finds the pages' widths,
// so that their memory can be taken, one that packs. Keys that are not in
// order give layout.ErrUnsorted and leave nothing behind; equal keys stay in
// the order they come in. Nothing of the source is kept.
func Build[C simd.Code](src layout.Source[C], cfg implicit.Config) (*Tree[C], error) {
	s, err := surveyKeys(src, cfg)
	if err != nil {
		return nil, err
	}
	plan, err := Plan[C](src.Len, s.bytes(), cfg)
	if err != nil {
		return nil, err
	}
	block, err := arena.New(plan.Sizes, plan.Slack, pageMode(plan.Sizes, cfg.Pages), cfg.Limit)
	if err != nil {
		return nil, err
	}
	if err := s.fill(block, src, cfg); err != nil {
		block.Release()
		return nil, err
	}
	t, err := Open[C](src.Len, cfg, block)
	if err != nil {
		block.Release()
	}
	return t, err
}

// fill writes the segments of a tree.
func (s *survey[C]) fill(block *arena.Block, src layout.Source[C], cfg implicit.Config) error {
	top, err := implicit.Build(layout.Source[C]{Len: len(s.greatest), Codes: s.greatest}, topConfig(cfg))
	if err != nil {
		return err
	}
	for i, segment := range top.Segments() {
		par.Copy(block.Segment(i), segment, par.Workers(cfg.Workers))
	}
	top.Release()
	par.Copy(arena.As[simd.PackedEntry](block.Segment(2)), s.table, par.Workers(cfg.Workers))
	if src.Len == 0 {
		return nil
	}
	var vals []byte
	if cfg.ValSize > 0 {
		vals = block.Segment(4)
	}
	var unsorted atomic.Bool
	count := len(s.table)
	par.Run(par.Workers(cfg.Workers), (count+piecePages-1)/piecePages, par.Func(func(p int) {
		lo, hi := p*piecePages, min((p+1)*piecePages, count)
		if unsorted.Load() {
			return
		}
		if !s.pack(block.Segment(3), src, lo, hi) {
			unsorted.Store(true)
			return
		}
		if vals != nil {
			from, end := lo*simd.PackedPage*cfg.ValSize, min(hi*simd.PackedPage, src.Len)*cfg.ValSize
			src.CopyVals(vals[from:end], lo*simd.PackedPage, cfg.ValSize)
		}
	}))
	if unsorted.Load() {
		return layout.ErrUnsorted
	}
	return nil
}

// runPages is how many pages are in hand at a time where keys are encoded: 32K
// keys, which stay in the second-level cache.
const runPages = 128

// pack writes pages [lo, hi). It returns false if it finds their keys, the one
// before included, out of order.
func (s *survey[C]) pack(words []byte, src layout.Source[C], lo, hi int) bool {
	var buf []C
	for ; lo < hi; lo += runPages {
		first, end := lo*simd.PackedPage, min(min(lo+runPages, hi)*simd.PackedPage, src.Len)
		before := min(first, 1)
		var keys []C
		if src.Codes != nil {
			keys = src.Codes[first-before : end]
		} else {
			if buf == nil {
				buf = make([]C, runPages*simd.PackedPage+1)
			}
			keys = buf[:end-first+before]
			src.Encode(keys, first-before)
		}
		if !order.Sorted(keys, 1) {
			return false
		}
		s.packPages(words, keys[before:], lo)
	}
	return true
}

// packPages writes the pages of sorted keys, from page p on.
func (s *survey[C]) packPages(words []byte, keys []C, p int) {
	var padded [simd.PackedPage]C
	for ; len(keys) > 0; p++ {
		n := min(len(keys), simd.PackedPage)
		page := keys[:n]
		if n < simd.PackedPage {
			pad(padded[copy(padded[:], page):], page[n-1])
			page = padded[:]
		}
		e := s.table[p]
		packPage((*[simd.PackedPage]C)(page), C(e.Min), e.At&0xff, words[e.At>>8*8:])
		keys = keys[n:]
	}
}

func pad[C simd.Code](s []C, v C) {
	for i := range s {
		s[i] = v
	}
}

// packPage writes the differences of a page to least: those of the last of
// each group, then all.
func packPage[C simd.Code](keys *[simd.PackedPage]C, least C, width uint64, to []byte) {
	if width == 0 {
		return
	}
	var separators [simd.PackedGroups]C
	for g := range separators {
		separators[g] = keys[g*simd.PackedGroup+simd.PackedGroup-1]
	}
	s := stream{to: to}
	s.used, s.held = packKeys(&s, separators[:], least, width)
	s.used, s.held = packKeys(&s, keys[:], least, width)
	if s.used > 0 {
		binary.LittleEndian.PutUint64(s.to, s.held)
	}
}

// stream is where differences go: whole words, and used bits of the next,
// which are held back.
type stream struct {
	to         []byte
	used, held uint64
}

// packKeys appends differences of width bits. It returns the bits held back,
// which stay in registers meanwhile.
func packKeys[C simd.Code](s *stream, keys []C, least C, width uint64) (used, held uint64) {
	used, held = s.used, s.held
	to := s.to
	for _, k := range keys {
		d := uint64(k - least)
		held |= d << used
		used += width
		if used >= 64 {
			binary.LittleEndian.PutUint64(to, held)
			to = to[8:]
			used -= 64
			held = d >> (width - used)
		}
	}
	s.to = to
	return used, held
}
