package consensus

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/pando-index/pando/internal/disk"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// A file of a snapshot is its bytes, then what raft wants to know of it, then a foot:
//
//	bytes of the snapshot (8) │ bytes of what raft wants to know (4) │ CRC-32C of that (4) │ "pandosnp"
const (
	foot      = 24
	footMagic = "pandosnp"
	suffix    = ".snapshot"
	temporary = ".new"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshots keeps the newest snapshot of each range of a process, in one folder.
type Snapshots struct {
	dir  disk.Folder
	lock io.Closer
	pace int64         // bytes that are written in a second, 0 for as many as the disk takes
	turn chan struct{} // has one token: snapshots of a process are written one after the other

	failed chan struct{} // closed at the first sync that fails

	mu     sync.Mutex
	err    error // of that sync, which is final: nobody knows what is on disk
	newest map[uint64]*kept
	number uint64 // of the last file, so that no two have one name
}

// kept is a snapshot on disk.
type kept struct {
	name  string
	meta  raft.SnapshotMeta
	users int  // that read it
	old   bool // there is a newer one: it is removed with its last user
}

// OpenSnapshots opens the snapshots in a folder. Files that are not whole are removed: nobody relies on them.
func OpenSnapshots(dir disk.Folder, pace int64) (*Snapshots, error) {
	lock, err := dir.Lock()
	if err != nil {
		return nil, err
	}
	s := &Snapshots{dir: dir, lock: lock, pace: pace, turn: make(chan struct{}, 1), failed: make(chan struct{}), newest: map[uint64]*kept{}}
	s.turn <- struct{}{}
	if err := s.scan(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// Close ends the use of the folder.
func (s *Snapshots) Close() error { return s.lock.Close() }

// Failed returns a channel that is closed at the first sync that fails.
func (s *Snapshots) Failed() <-chan struct{} { return s.failed }

// Err returns the error of that sync.
func (s *Snapshots) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// synced notes the error of a sync.
func (s *Snapshots) synced(err error) error {
	if err == nil || mutant.On && mutant.Is("cluster: a snapshot's sync fails for good") {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("snapshots of the replicas cannot be written, and this node must end: %w", err)
		close(s.failed)
	}
	return s.err
}

func (s *Snapshots) scan() error {
	names, err := s.dir.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, temporary) {
			if err := s.dir.Remove(name); err != nil {
				return err
			}
			continue
		}
		id, number, ok := parseName(name)
		if !ok {
			continue
		}
		s.number = max(s.number, number)
		meta, err := s.read(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		k := &kept{name: name, meta: meta}
		if o := s.newest[id]; o == nil || newer(&k.meta, &o.meta) {
			s.newest[id], k = k, o
		}
		if k != nil {
			if err := s.dir.Remove(k.name); err != nil {
				return err
			}
		}
	}
	return nil
}

func newer(a, b *raft.SnapshotMeta) bool {
	return a.Index > b.Index || a.Index == b.Index && a.Term > b.Term
}

func nameOf(id, number uint64) string { return fmt.Sprintf("%016x-%016x%s", id, number, suffix) }

func parseName(name string) (id, number uint64, ok bool) {
	base, ok := strings.CutSuffix(name, suffix)
	a, b, dash := strings.Cut(base, "-")
	if !ok || !dash {
		return 0, 0, false
	}
	id, err := strconv.ParseUint(a, 16, 64)
	number, err2 := strconv.ParseUint(b, 16, 64)
	return id, number, err == nil && err2 == nil && name == nameOf(id, number)
}

// read reads what raft wants to know of a snapshot.
func (s *Snapshots) read(name string) (meta raft.SnapshotMeta, err error) {
	f, err := s.dir.Open(name)
	if err != nil {
		return meta, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return meta, err
	}
	bad := errors.New("this snapshot is damaged")
	var b [foot]byte
	if size < foot {
		return meta, bad
	}
	if _, err := f.ReadAt(b[:], size-foot); err != nil && err != io.EOF {
		return meta, err
	}
	body, known := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint32(b[8:])
	if string(b[16:]) != footMagic || body+uint64(known)+foot != uint64(size) {
		return meta, bad
	}
	of := make([]byte, known)
	if _, err := f.ReadAt(of, int64(body)); err != nil && err != io.EOF {
		return meta, err
	}
	if crc32.Checksum(of, castagnoli) != binary.LittleEndian.Uint32(b[12:]) {
		return meta, bad
	}
	r := packet.Read(of)
	meta = raft.SnapshotMeta{Version: 1, ID: name, Index: r.Uint(), Term: r.Uint(), ConfigurationIndex: r.Uint(), Size: int64(body)}
	config := r.Bytes()
	if r.Err() != nil {
		return meta, bad
	}
	if meta.Configuration, err = decodeMembers(config); err != nil {
		return meta, bad
	}
	return meta, nil
}

// decodeMembers reads members as raft writes them, which panics where it cannot.
func decodeMembers(b []byte) (c raft.Configuration, err error) {
	defer func() {
		if recover() != nil {
			err = packet.ErrBad
		}
	}()
	return raft.DecodeConfiguration(b), nil
}

// Groups returns the ranges that have a snapshot.
func (s *Snapshots) Groups() (ids []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.newest {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Newest returns what raft wants to know of the snapshot of a range.
func (s *Snapshots) Newest(id uint64) (meta raft.SnapshotMeta, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.newest[id]; k != nil {
		return k.meta, true
	}
	return meta, false
}

// Open opens the snapshot of a range.
func (s *Snapshots) Open(id uint64) (io.ReadCloser, error) {
	_, r, err := (&ofGroup{all: s, id: id}).Open("")
	return r, err
}

// Drop removes the snapshot of a range.
func (s *Snapshots) Drop(id uint64) error {
	s.mu.Lock()
	k := s.newest[id]
	delete(s.newest, id)
	s.mu.Unlock()
	return s.retire(k)
}

// retire removes a snapshot that is not the newest any more, unless somebody reads it: then the last of those does.
func (s *Snapshots) retire(k *kept) error {
	if k == nil {
		return nil
	}
	s.mu.Lock()
	k.old = true
	used := k.users > 0
	s.mu.Unlock()
	if used && !(mutant.On && mutant.Is("cluster: snapshots in use are kept")) {
		return nil
	}
	return s.dir.Remove(k.name)
}

// Put writes the snapshot with which a range begins.
func (s *Snapshots) Put(ctx context.Context, id uint64, servers []string, from io.WriterTo) error {
	g := &ofGroup{all: s, id: id, ctx: ctx}
	var c raft.Configuration
	for _, server := range servers {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(server), Address: raft.ServerAddress(server)})
	}
	sink, err := g.Create(1, 1, 1, c, 1, nil)
	if err != nil {
		return err
	}
	if _, err := from.WriteTo(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// ofGroup is the snapshots of a range, as raft wants them.
type ofGroup struct {
	all *Snapshots
	id  uint64
	ctx context.Context // ends what waits to be written

	come atomic.Pointer[sink] // a snapshot of another member, until raft takes it
}

func (g *ofGroup) List() ([]*raft.SnapshotMeta, error) {
	if meta, ok := g.all.Newest(g.id); ok {
		return []*raft.SnapshotMeta{&meta}, nil
	}
	return nil, nil
}

// Open opens the newest snapshot, which is as good as any older one.
func (g *ofGroup) Open(string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s := g.all
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.newest[g.id]
	if k == nil {
		return nil, nil, errors.New("there is no snapshot")
	}
	f, err := s.dir.Open(k.name)
	if err != nil {
		return nil, nil, err
	}
	k.users++
	meta := k.meta
	return &meta, &reading{bufio.NewReaderSize(io.NewSectionReader(f, 0, meta.Size), 256<<10), f, s, k, false}, nil
}

// reading is a snapshot that is read.
type reading struct {
	io.Reader
	f      disk.File
	s      *Snapshots
	k      *kept
	closed bool
}

func (r *reading) Close() error {
	r.s.mu.Lock()
	closed := r.closed
	last := false
	if !closed {
		r.closed = true
		r.k.users--
		last = r.k.users == 0 && r.k.old
	}
	r.s.mu.Unlock()
	if closed {
		return nil
	}
	err := r.f.Close()
	if last {
		err = errors.Join(err, r.s.dir.Remove(r.k.name))
	}
	return err
}

// Create begins a snapshot, or returns the one that has come before raft was told of it.
func (g *ofGroup) Create(_ raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if got := g.come.Load(); got != nil && got.k.meta.Index == index && got.k.meta.Term == term && g.come.CompareAndSwap(got, nil) {
		got.k.meta.Configuration, got.k.meta.ConfigurationIndex = c, at
		return received{got}, nil
	}
	return g.create(raft.SnapshotMeta{Version: 1, Index: index, Term: term, Configuration: c, ConfigurationIndex: at})
}

func (g *ofGroup) create(meta raft.SnapshotMeta) (*sink, error) {
	s := g.all
	s.mu.Lock()
	s.number++
	name := nameOf(g.id, s.number)
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f, err := s.dir.Create(name + temporary)
	if err != nil {
		return nil, err
	}
	meta.ID = name
	return &sink{g: g, k: &kept{name: name, meta: meta}, f: f, since: time.Now()}, nil
}

// receive writes a snapshot of another member, so that Create has it at once: raft hears nobody while it reads one. drop gives it up if
// raft has not taken it.
func (g *ofGroup) receive(index, term uint64, size int64, from io.Reader) (drop func(), err error) {
	to, err := g.create(raft.SnapshotMeta{Version: 1, Index: index, Term: term})
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(to, io.LimitReader(from, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("a snapshot of %d bytes has %d", size, n)
	}
	if err == nil {
		err = to.settle()
	}
	if err != nil {
		return nil, errors.Join(err, to.Cancel())
	}
	g.come.Store(to)
	return func() {
		if g.come.CompareAndSwap(to, nil) {
			to.Cancel()
		}
	}, nil
}

// received is a snapshot that has come whole.
type received struct{ *sink }

func (received) Write([]byte) (int, error) {
	return 0, errors.New("this snapshot is another member's")
}

// ReadFrom is what raft calls in the place of Write.
func (s received) ReadFrom(io.Reader) (int64, error) { return s.k.meta.Size, nil }

// sink is a snapshot that is being written.
type sink struct {
	g     *ofGroup
	k     *kept
	f     disk.File
	buf   []byte
	since time.Time
	ended bool
	err   error
}

func (s *sink) ID() string { return s.k.name }

func (s *sink) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.buf = append(s.buf, b...)
	if len(s.buf) >= 1<<20 {
		s.err = s.flush()
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(b), nil
}

// settle writes what is there, and makes it durable.
func (s *sink) settle() error {
	if len(s.buf) > 0 {
		if s.err = s.flush(); s.err != nil {
			return s.err
		}
	}
	return s.sync()
}

func (s *sink) sync() error {
	if mutant.On && mutant.Is("cluster: snapshot synced") {
		return nil
	}
	return s.g.all.synced(s.f.Sync())
}

// flush writes what is there, and waits until it is time for more.
func (s *sink) flush() error {
	n, err := s.f.WriteAt(s.buf, s.k.meta.Size)
	s.k.meta.Size += int64(n)
	s.buf = s.buf[:0]
	if err != nil {
		return err
	}
	if pace := s.g.all.pace; pace > 0 {
		ahead := time.Duration(float64(s.k.meta.Size)/float64(pace)*float64(time.Second)) - time.Since(s.since)
		select {
		case <-time.After(max(0, ahead)):
		case <-s.g.ctx.Done():
			return ErrClosed
		}
	}
	return nil
}

// Close makes the snapshot durable, and the newest. Raft calls it once more.
func (s *sink) Close() error {
	if s.ended {
		return s.err
	}
	if s.err == nil && len(s.buf) > 0 {
		s.err = s.flush()
	}
	if s.err == nil {
		s.err = s.finish()
	}
	if s.err != nil {
		return errors.Join(s.err, s.Cancel())
	}
	s.ended = true
	all, id := s.g.all, s.g.id
	all.mu.Lock()
	old := all.newest[id]
	late := old != nil && newer(&old.meta, &s.k.meta)
	if late {
		old = s.k
		s.err = errLate
	} else {
		all.newest[id] = s.k
	}
	all.mu.Unlock()
	return errors.Join(s.err, all.retire(old))
}

// errLate says that there is a newer snapshot. Raft must not take this one for its newest.
var errLate = errors.New("there is a newer snapshot by now")

func (s *sink) finish() error {
	m := &s.k.meta
	of := packet.Uint(packet.Uint(packet.Uint(nil, m.Index), m.Term), m.ConfigurationIndex)
	of = packet.Bytes(of, raft.EncodeConfiguration(m.Configuration))
	b := binary.LittleEndian.AppendUint64(slices.Clone(of), uint64(m.Size))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(of)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(of, castagnoli))
	if _, err := s.f.WriteAt(append(b, footMagic...), m.Size); err != nil {
		return err
	}
	if err := s.sync(); err != nil {
		return err
	}
	dir := s.g.all.dir
	if err := dir.Rename(s.k.name+temporary, s.k.name); err != nil {
		return err
	}
	if err := s.g.all.synced(dir.Sync()); err != nil {
		return err
	}
	return s.f.Close()
}

// Cancel gives the snapshot up.
func (s *sink) Cancel() error {
	if s.ended {
		return nil
	}
	s.ended = true
	if s.err == nil {
		s.err = errors.New("the snapshot was given up")
	}
	s.f.Close()
	s.g.all.dir.Remove(s.k.name + temporary) // what stays is removed at the next start
	return nil
}

// inTurn waits until no other snapshot of the process is written. It returns false if ctx ends before.
func (s *Snapshots) inTurn(ctx context.Context) (done func(), ok bool) {
	select {
	case <-s.turn:
		return func() { s.turn <- struct{}{} }, true
	case <-ctx.Done():
		return nil, false
	}
}
