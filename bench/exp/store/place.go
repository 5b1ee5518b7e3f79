package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
)

// place is a folder for the stores of one size. It lies where TMPDIR says, which should be
// on the disk to be measured.
type place struct {
	dir    string
	stores []peers.Durable
	limit  *bare
}

func newPlace() (*place, error) {
	dir, err := os.MkdirTemp("", "pando-store-*")
	return &place{dir: dir}, err
}

// close closes all stores, and removes the folder.
func (p *place) close() {
	for _, st := range p.stores {
		st.Close() // what is measured was durable before
	}
	if p.limit != nil {
		p.limit.f.Close()
	}
	os.RemoveAll(p.dir)
}

// fillBatch is the pairs that stores are filled with at a time.
const fillBatch = 64 * contest.Kilo

// open opens a store in a folder of its own, and fills it with the pairs of a data set in
// random order.
func (p *place) open(s *contest.Session, m peers.DurableMaker, d *data.Dataset[uint64]) (peers.Durable, error) {
	st, err := m.Open(p.folder(m.Name))
	if err == nil {
		p.stores = append(p.stores, st)
		s.Say("%s: filling with %s pairs", m.Name, contest.SizeText(len(d.Keys)))
		err = fill(st, d, s.Seed)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return st, nil
}

// folder returns the folder of a store, which it makes.
func (p *place) folder(name string) string {
	dir := filepath.Join(p.dir, name)
	_ = os.MkdirAll(dir, 0o777) // to open a store in it says more
	return dir
}

func fill(st peers.Durable, d *data.Dataset[uint64], seed uint64) error {
	from := d.Shuffled(seed)
	return inBatches(st, from.Keys, from.Vals, fillBatch)
}

// inBatches sets pairs in batches of a size.
func inBatches(st peers.Durable, keys, vals []uint64, batch int) error {
	for lo := 0; lo < len(keys); lo += batch {
		hi := min(lo+batch, len(keys))
		if err := st.SetBatch(keys[lo:hi], vals[lo:hi]); err != nil {
			return err
		}
	}
	return nil
}

// openPeers opens all peers that were asked for.
func (p *place) openPeers(s *contest.Session, d *data.Dataset[uint64]) (all []peers.Durable, err error) {
	if len(peers.Durables()) == 0 {
		s.SkipOnce(peers.WithoutDurables)
	}
	for _, m := range peers.Durables() {
		if !s.Wanted(m.Name) {
			continue
		}
		st, err := p.open(s, m, d)
		if err != nil {
			return nil, err
		}
		all = append(all, st)
	}
	return all, nil
}

// check looks whether a store has pairs.
func check(st peers.Durable, keys, vals []uint64) error {
	for i, k := range keys {
		v, ok, err := st.Get(k)
		if err != nil || !ok || v != vals[i] {
			return errors.Join(err, fmt.Errorf("key %d has value %d, found %v", k, v, ok))
		}
	}
	return nil
}

// bare is the disk by itself: a file of zeros that is written over, as a log is whose segments
// are made ahead.
type bare struct {
	f    *os.File
	at   int64
	size int64
	buf  []byte
}

// newBare makes the file, of zeros that are on disk.
func (p *place) newBare(size int64) (*bare, error) {
	f, err := os.Create(filepath.Join(p.dir, "bare"))
	if err != nil {
		return nil, err
	}
	p.limit = &bare{f: f, size: size, buf: make([]byte, 1<<20)}
	for at := int64(0); at < size; at += int64(len(p.limit.buf)) {
		if _, err := f.WriteAt(p.limit.buf, at); err != nil {
			return nil, err
		}
	}
	for i := range p.limit.buf {
		p.limit.buf[i] = byte(i*7 + 1)
	}
	return p.limit, f.Sync()
}

// write writes bytes behind those before, and syncs them.
func (b *bare) write(bytes int64) error {
	if b.at+bytes > b.size {
		b.at = 0
	}
	for bytes > 0 {
		n := min(bytes, int64(len(b.buf)))
		if _, err := b.f.WriteAt(b.buf[:n], b.at); err != nil {
			return err
		}
		b.at, bytes = b.at+n, bytes-n
	}
	return syncData(b.f)
}
