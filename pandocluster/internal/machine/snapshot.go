package machine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// A snapshot is a header and an ordinary file of Pando's with the keys of the range:
//
//	 0 │ "pandorng" (8 bytes)
//	 8 │ bytes of the state, CRC-32C of it (4 each)
//	16 │ state: version, range, index, bounds, children, sessions with results and parts
//	   │ file of Pando's
const (
	magic        = "pandorng"
	stateVersion = 1
	mostState    = 2 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Moment is a range as it was at one entry.
type Moment struct {
	header []byte
	keys   *pando.Frozen[string, []byte]
	bounds Bounds
}

// Moment returns the range as it is now.
func (m *Machine) Moment() *Moment {
	m.turn.Lock()
	defer m.turn.Unlock()
	return m.moment(m.bounds, m.header(m.applied.Load()))
}

func (m *Machine) moment(b Bounds, header []byte) *Moment {
	return &Moment{header, m.tree.Snapshot(), b}
}

// Empty returns a range without keys, as the first node of a cluster begins it.
func Empty(id uint64, b Bounds) (*Moment, error) {
	none, err := pando.Freeze[string, []byte](nil, nil)
	return &Moment{(&Machine{id: id, bounds: b}).header(1), none, b}, err
}

// Bounds returns the bounds of the moment.
func (o *Moment) Bounds() Bounds { return o.bounds }

// Close frees the moment.
func (o *Moment) Close() { o.keys.Close() }

// WriteTo writes the snapshot.
func (o *Moment) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(o.header)
	if err != nil {
		return int64(n), err
	}
	file, err := o.Keys()
	if err != nil {
		return int64(n), err
	}
	defer file.Close()
	more, err := file.WriteTo(w)
	return int64(n) + more, err
}

// header returns the header of a snapshot at an index.
func (m *Machine) header(index uint64) []byte {
	b := m.bounds.append(packet.Uint(packet.Uint(packet.Uint(nil, stateVersion), m.id), index))
	b = packet.Uint(b, uint64(len(m.children)))
	for i := range m.children {
		b = m.children[i].append(b)
	}
	sessions := m.sessions
	if mutant.On && mutant.Is("cluster: sessions in snapshots") {
		sessions = nil
	}
	b = packet.Uint(b, uint64(len(sessions)))
	for id, s := range sorted(sessions) {
		b = packet.Uint(packet.Uint(packet.Uint(b, id), s.last), s.acked)
		b = packet.Uint(b, uint64(len(s.done)))
		for seq, res := range sorted(s.done) {
			b = packet.Bytes(packet.Uint(b, seq), res)
		}
		b = packet.Uint(b, uint64(len(s.parts)))
		for seq, parts := range sorted(s.parts) {
			b = packet.Uint(packet.Uint(b, seq), uint64(len(parts)))
			for n, p := range sorted(parts) {
				b = packet.Bytes(packet.Uint(b, n), p)
			}
		}
	}
	h := append(make([]byte, 0, 16+len(b)), magic...)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(b)))
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(b, castagnoli))
	return append(h, b...)
}

// sorted iterates over a map in the order of its keys.
func sorted[K cmp.Ordered, V any](m map[K]V) func(yield func(K, V) bool) {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// state is what a header has.
type state struct {
	id, index uint64
	bounds    Bounds
	children  []Born
	sessions  map[uint64]*session
	staged    int
	kept      int
}

// readState reads a header.
func readState(r io.Reader) (s state, err error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return s, err
	}
	size := binary.LittleEndian.Uint32(head[8:])
	if string(head[:8]) != magic || size > mostState {
		return s, errors.New("this is no snapshot of a range")
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && (len(b) != int(size) || crc32.Checksum(b, castagnoli) != binary.LittleEndian.Uint32(head[12:])) {
		err = errors.New("the header of a snapshot is damaged")
	}
	if err != nil {
		return s, err
	}
	p := packet.Read(b)
	if v := p.Uint(); v != stateVersion {
		return s, fmt.Errorf("a snapshot has version %d, and this program knows %d", v, stateVersion)
	}
	s.id, s.index, s.bounds = p.Uint(), p.Uint(), readBounds(p)
	for range p.Count() {
		s.children = append(s.children, readBorn(p))
	}
	s.sessions = map[uint64]*session{}
	for range p.Count() {
		id := p.Uint()
		one := newSession(p.Uint())
		one.acked = p.Uint()
		for range p.Count() {
			seq := p.Uint()
			one.done[seq] = p.Bytes()
			one.kept += len(one.done[seq])
		}
		for range p.Count() {
			seq := p.Uint()
			parts := map[uint64][]byte{}
			for range p.Count() {
				n := p.Uint()
				parts[n] = p.Bytes()
				one.staged += len(parts[n])
			}
			one.parts[seq] = parts
		}
		s.kept, s.staged = s.kept+one.kept, s.staged+one.staged
		s.sessions[id] = one
	}
	return s, p.Err()
}

// BoundsOf reads the bounds of a snapshot.
func BoundsOf(r io.Reader) (Bounds, error) {
	s, err := readState(r)
	return s.bounds, err
}

// Restore gives the machine the state of a snapshot, in the place of what it has. claim is asked
// before anything changes whether the node has room for these bounds.
func (m *Machine) Restore(r io.Reader, claim func(Bounds) error) error {
	s, err := readState(r)
	if err != nil {
		return err
	}
	if s.id != m.id {
		return fmt.Errorf("this is a snapshot of range %d, and not of %d", s.id, m.id)
	}
	if err := claim(s.bounds); err != nil {
		return err
	}
	from, err := pando.ReadTree[string, []byte](r)
	if err != nil {
		return err
	}
	defer from.Close()
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.there {
		clearOf(m.tree, m.bounds.span())
	}
	clearOf(m.tree, s.bounds.span()) // a parent may have left some behind, whose child has come by itself
	m.there = false
	if err := load(m.tree, from); err != nil {
		return err
	}
	m.bounds, m.there = s.bounds, true
	m.children, m.sessions, m.staged, m.kept = s.children, s.sessions, s.staged, s.kept
	m.applied.Store(s.index)
	return nil
}

// load puts the entries of one tree into another.
func load(to, from *Tree) error {
	const at = 16 << 10
	keys, vals := make([]string, 0, at), make([][]byte, 0, at)
	flush := func() error {
		err := to.SetBatch(keys, vals)
		keys, vals = keys[:0], vals[:0]
		return err
	}
	for k, v := range from.All() {
		keys, vals = append(keys, k), append(vals, v)
		if len(keys) == at {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
