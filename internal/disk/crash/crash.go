// Package crash is a folder in memory for tests: it returns what a disk may hold after
// a crash, and fails when it is told to.
//
// A write is certain once its file was synced, a name once the folder was. Until then a
// crash keeps it, loses it, or keeps some of its bytes, each by itself: a disk and a file
// system may do things in any order.
package crash

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/pando-index/pando/internal/disk"
)

// Folder is a folder in memory.
type Folder struct {
	mu     sync.Mutex
	names  map[string]*inode // as programs see them
	stable map[string]*inode // as they are certain to be
	since  []naming          // since the last Sync
	locked bool
	calls  int

	before   func(n int, what string)
	fail     func(n int, what string) Fault
	failRead func(what string) error
}

// Fault is what happens to a call. Err is what it returns, nil if all is well.
type Fault struct {
	Err   error
	Short bool // a write has written half of its bytes
}

// naming is a change of names: to leads to node, from to nothing.
type naming struct {
	from, to string
	node     *inode
}

func (n *naming) do(names map[string]*inode) {
	if n.from != "" {
		delete(names, n.from)
	}
	if n.to != "" {
		names[n.to] = n.node
	}
}

// inode is a file.
type inode struct {
	data   []byte // as programs see it
	stable []byte // as it is certain to be
	since  []write
}

type write struct {
	at   int64
	data []byte
}

func (w write) to(data []byte) []byte {
	if end := int(w.at) + len(w.data); end > len(data) {
		data = append(data, make([]byte, end-len(data))...)
	}
	copy(data[w.at:], w.data)
	return data
}

// New returns an empty folder.
func New() *Folder {
	return &Folder{names: map[string]*inode{}, stable: map[string]*inode{}}
}

// SetBefore sets a function that is called before each call that changes something, with the number
// of such calls so far and what it does. nil is none, as at first.
func (d *Folder) SetBefore(f func(n int, what string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = f
}

// SetFail sets a function that returns what is to happen to a call that changes something.
func (d *Folder) SetFail(f func(n int, what string) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = f
}

// SetFailRead sets a function that returns what a call that changes nothing is to return: names,
// lock, and open, size, read and close of a file.
func (d *Folder) SetFailRead(f func(what string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failRead = f
}

// Calls returns the number of calls so far that change something.
func (d *Folder) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// begin counts a call, and returns what is to happen to it.
func (d *Folder) begin(what string) Fault {
	d.mu.Lock()
	n := d.calls
	d.calls++
	before, fail := d.before, d.fail
	d.mu.Unlock()
	if before != nil {
		before(n, what)
	}
	if fail != nil {
		return fail(n, what)
	}
	return Fault{}
}

// read returns the error of a call that changes nothing.
func (d *Folder) read(what string) error {
	d.mu.Lock()
	fail := d.failRead
	d.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(what)
}

// Image returns what a crash at this moment may leave. The same random numbers leave the
// same.
func (d *Folder) Image(rng *rand.Rand) *Folder {
	d.mu.Lock()
	defer d.mu.Unlock()
	mood := rng.IntN(4) // all kept, all lost, or each by itself
	keep := func() bool { return mood == 0 || mood > 1 && rng.IntN(2) == 0 }
	names := map[string]*inode{}
	for n, node := range d.stable {
		names[n] = node
	}
	for i := range d.since {
		if keep() {
			d.since[i].do(names)
		}
	}
	order := make([]string, 0, len(names))
	for n := range names {
		order = append(order, n)
	}
	slices.Sort(order)
	image := New()
	made := map[*inode]*inode{}
	for _, n := range order {
		node := names[n]
		if made[node] == nil {
			made[node] = node.image(rng, mood, keep)
		}
		image.names[n], image.stable[n] = made[node], made[node]
	}
	return image
}

// image returns what a crash may leave of a file.
func (f *inode) image(rng *rand.Rand, mood int, keep func() bool) *inode {
	data := slices.Clone(f.stable)
	for _, w := range f.since {
		switch {
		case mood > 1 && rng.IntN(2) == 0:
			data = torn(data, w, rng)
		case keep():
			data = w.to(data)
		}
	}
	return &inode{data: data, stable: slices.Clone(data)}
}

// torn does some of a write: its first bytes, or some of the sectors.
func torn(data []byte, w write, rng *rand.Rand) []byte {
	if len(w.data) == 0 {
		return data
	}
	if rng.IntN(2) == 0 {
		return write{w.at, w.data[:rng.IntN(len(w.data))]}.to(data)
	}
	const sector = 512
	for lo := int64(0); lo < int64(len(w.data)); {
		hi := min(int64(len(w.data)), (w.at+lo)/sector*sector+sector-w.at)
		if rng.IntN(2) == 0 {
			data = write{w.at + lo, w.data[lo:hi]}.to(data)
		}
		lo = hi
	}
	return data
}

// Clone returns a copy of the folder as programs see it, all of it durable.
func (d *Folder) Clone() *Folder {
	d.mu.Lock()
	defer d.mu.Unlock()
	to := New()
	for n, f := range d.names {
		node := &inode{data: slices.Clone(f.data), stable: slices.Clone(f.data)}
		to.names[n], to.stable[n] = node, node
	}
	return to
}

// Bytes returns the content of a file, which the caller may change.
func (d *Folder) Bytes(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names[name].data
}

// SetBytes replaces the content of a file, durably.
func (d *Folder) SetBytes(name string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := &inode{data: data, stable: slices.Clone(data)}
	d.names[name], d.stable[name] = node, node
}

func (d *Folder) Path(string) string { return "" }

func (d *Folder) Names() (names []string, err error) {
	if err := d.read("names"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range d.names {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, nil
}

// change changes names.
func (d *Folder) change(n naming) {
	n.do(d.names)
	d.since = append(d.since, n)
}

func notThere(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

func (d *Folder) Create(name string) (disk.File, error) {
	if f := d.begin("create " + name); f.Err != nil {
		return nil, f.Err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	node := new(inode)
	d.change(naming{to: name, node: node})
	return &file{d, node, name}, nil
}

func (d *Folder) Open(name string) (disk.File, error) {
	if err := d.read("open " + name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.names[name]
	if node == nil {
		return nil, notThere("open", name)
	}
	return &file{d, node, name}, nil
}

func (d *Folder) Rename(from, to string) error {
	if f := d.begin("rename " + from + " " + to); f.Err != nil {
		return f.Err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[from] == nil {
		return notThere("rename", from)
	}
	d.change(naming{from: from, to: to, node: d.names[from]})
	return nil
}

func (d *Folder) Remove(name string) error {
	if f := d.begin("remove " + name); f.Err != nil {
		return f.Err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return notThere("remove", name)
	}
	d.change(naming{from: name})
	return nil
}

func (d *Folder) Sync() error {
	if f := d.begin("sync folder"); f.Err != nil {
		return f.Err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.since {
		d.since[i].do(d.stable)
	}
	d.since = nil
	return nil
}

func (d *Folder) Lock() (io.Closer, error) {
	if err := d.read("lock"); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, &disk.Locked{Path: "the folder", Owner: "this test"}
	}
	d.locked = true
	return unlocker{d}, nil
}

type unlocker struct{ d *Folder }

func (u unlocker) Close() error {
	u.d.mu.Lock()
	defer u.d.mu.Unlock()
	u.d.locked = false
	return nil
}

// file is an open file.
type file struct {
	d    *Folder
	node *inode
	name string
}

func (f *file) Close() error { return f.d.read("close " + f.name) }

func (f *file) Size() (int64, error) {
	if err := f.d.read("size " + f.name); err != nil {
		return 0, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.node.data)), nil
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	if err := f.d.read("read " + f.name); err != nil {
		return 0, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if at >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	fault := f.d.begin(fmt.Sprintf("write %s %d %d", f.name, at, len(b)))
	if fault.Err != nil && !fault.Short {
		return 0, fault.Err
	}
	if fault.Err != nil {
		b = b[:len(b)/2]
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	w := write{at, slices.Clone(b)}
	f.node.data = w.to(f.node.data)
	f.node.since = append(f.node.since, w)
	return len(b), fault.Err
}

// Sync makes writes certain. If it is to fail, it forgets what it should have written, as
// systems do: programs still see it, and a later Sync does not write it.
func (f *file) Sync() error {
	fault := f.d.begin("sync " + f.name)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if fault.Err != nil {
		f.node.since = nil
		return fault.Err
	}
	for _, w := range f.node.since {
		f.node.stable = w.to(f.node.stable)
	}
	f.node.since = nil
	return nil
}
