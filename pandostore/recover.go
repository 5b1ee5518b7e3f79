package pandostore

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/pandostore/internal/disk"
	"github.com/pando-index/pando/pandostore/internal/log"
)

// recovery brings a store back: the newest checkpoint, and the log behind it.
//
// The log is read twice. The first time all of it is checked, several segments at once:
// that shows where it ends, which batches are complete and which operations were refused.
// The second time it is done again, in its order, as batches that use all cores.
type recovery struct {
	*core
	load func(checkpoint, note string) (target, error)

	chosen   string // the checkpoint
	segment  uint64 // where the log begins
	next     uint64
	segments []uint64 // those from there on
	extra    []string // what is in the folder and no longer needed
	halves   []string // files that a program was writing when it ended

	info    log.Info
	scans   []log.Scan
	last    int             // which of them is the last that was written to
	whole   map[uint64]bool // batches that have a commit
	refused []refusal       // in order, none of which touch

	mu       sync.Mutex
	progress Progress
}

// refusal is operations that the tree refused.
type refusal struct{ first, end uint64 }

// run recovers the store, and returns where its log goes on.
func (r *recovery) run() (start log.Start, info log.Info, err error) {
	if err := r.look(); err != nil {
		return start, info, err
	}
	r.remove(r.halves)
	if len(r.segments) == 0 {
		return r.fresh()
	}
	if err := r.readInfo(); err != nil {
		return start, info, err
	}
	if err := r.measure(); err != nil {
		return start, info, err
	}
	if err := r.loadCheckpoint(); err != nil {
		return start, info, err
	}
	if err := r.suits(); err != nil {
		return start, info, err
	}
	begun := time.Now()
	if err := r.check(); err != nil {
		return start, info, err
	}
	if err := r.replay(); err != nil {
		return start, info, err
	}
	r.found.LogTime = time.Since(begun)
	r.advance(r.progress.Total - r.progress.Done) // segments that nothing was written to are read once
	start = r.startAt(r.last)
	if r.last > 0 && r.scans[r.last].Frames == 0 {
		before := r.startAt(r.last - 1)
		start.Before = &before
	}
	return start, r.info, nil
}

// startAt returns where a segment ends.
func (r *recovery) startAt(i int) log.Start {
	end := r.scans[i]
	return log.Start{Segment: r.segments[i], Offset: end.End, Next: r.next, Durable: end.Durable, Torn: end.Torn}
}

// look finds out what is in the folder, and takes the newest checkpoint.
func (r *recovery) look() error {
	checkpoints, all, err := r.list()
	if err != nil {
		return err
	}
	newest := ""
	if n := len(checkpoints); n > 0 {
		newest = checkpoints[n-1]
		r.extra = append(r.extra, checkpoints[:n-1]...)
	}
	return r.choose(newest, all)
}

// list returns the checkpoints and the segments of the folder, in their order.
func (r *recovery) list() (checkpoints []string, all []uint64, err error) {
	names, err := r.dir.Names()
	if err != nil {
		return nil, nil, err
	}
	foreign := ""
	for _, name := range names {
		n, isLog := log.Numbered(name)
		_, _, isCheckpoint := checkpointOf(name)
		switch {
		case isLog:
			all = append(all, n)
		case isCheckpoint:
			checkpoints = append(checkpoints, name)
		case isHalf(name):
			r.halves = append(r.halves, name)
		default:
			foreign = name
		}
	}
	if len(all) == 0 && len(checkpoints) == 0 && foreign != "" {
		return nil, nil, fmt.Errorf("%w: %s is no store: it has a file %s, and no log", pando.ErrFile, folderName(r.dir), foreign)
	}
	slices.Sort(all)
	slices.Sort(checkpoints)
	return checkpoints, all, nil
}

// choose takes a checkpoint, or none, and the segments behind it.
func (r *recovery) choose(checkpoint string, all []uint64) error {
	r.chosen, r.segments, r.segment, r.next = checkpoint, nil, 1, 1
	if checkpoint != "" {
		r.segment, r.next, _ = checkpointOf(checkpoint)
	}
	for _, n := range all {
		switch {
		case n < r.segment:
			r.extra = append(r.extra, log.Name(n))
		case n != r.segment+uint64(len(r.segments)):
			return r.missing()
		default:
			r.segments = append(r.segments, n)
		}
	}
	if len(r.segments) == 0 && (len(all) > 0 || checkpoint != "") {
		return r.missing()
	}
	return nil
}

// missing says that the segment behind those that were found is missing.
func (r *recovery) missing() error {
	return &log.Bad{Name: log.Name(r.segment + uint64(len(r.segments))), Why: "this part of the log is missing"}
}

// isHalf reports whether a name is that of a file of a store's that a program was writing.
func isHalf(name string) bool {
	whole, ok := strings.CutSuffix(name, log.Temporary)
	_, isLog := log.Numbered(whole)
	_, _, isCheckpoint := checkpointOf(whole)
	return ok && (isLog || isCheckpoint)
}

// fresh begins a new store.
func (r *recovery) fresh() (start log.Start, info log.Info, err error) {
	r.info.Store = rand.Uint64()
	if err := r.loadCheckpoint(); err != nil {
		return start, info, err
	}
	info.Store = r.info.Store
	info.Key, info.Value = r.cols.Names()
	info.ValSize = r.cols.ValueSize()
	return log.Start{Segment: 1, Next: 1}, info, nil
}

// readInfo reads what the first segment says of the store.
func (r *recovery) readInfo() error {
	if len(r.segments) == 0 {
		return r.missing()
	}
	f, err := r.dir.Open(log.Name(r.segments[0]))
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, log.HeaderSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("cannot read %s: %w", log.Name(r.segments[0]), err)
	}
	r.info, err = log.ReadInfo(head[:n], r.segments[0])
	return err
}

// read reads a segment.
func (r *recovery) read(segment uint64) ([]byte, error) { return readAll(r.dir, log.Name(segment)) }

// wholeFile is a file that is read from its beginning to its end.
type wholeFile struct {
	*io.SectionReader
	io.Closer
}

// whole opens a file to be read.
func whole(dir disk.Folder, name string) (wholeFile, error) {
	f, err := dir.Open(name)
	if err != nil {
		return wholeFile{}, err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return wholeFile{}, err
	}
	return wholeFile{io.NewSectionReader(f, 0, size), f}, nil
}

// readAll reads a file, to an address that is a multiple of 8.
func readAll(dir disk.Folder, name string) ([]byte, error) {
	f, err := whole(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, f.Size()) // of 8 bytes and more, and then it is aligned
	if n, err := f.ReadAt(data, 0); err != nil && err != io.EOF || n != len(data) {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return data, nil
}

// measure finds out how much there is to read.
func (r *recovery) measure() error {
	add := func(name string, times int64) error {
		size, err := r.sizeOf(name)
		r.progress.Total += times * size
		return err
	}
	for _, n := range r.segments {
		if err := add(log.Name(n), 2); err != nil {
			return err
		}
	}
	if r.chosen == "" {
		return nil
	}
	before := r.progress.Total
	err := add(r.chosen, 1)
	r.found.CheckpointBytes = r.progress.Total - before
	return err
}

// sizeOf returns the bytes of a file.
func (r *recovery) sizeOf(name string) (int64, error) {
	f, err := r.dir.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Size()
}

// advance reports progress.
func (r *recovery) advance(bytes int64) {
	if r.cfg.progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Done += bytes
	r.cfg.progress(r.progress)
}

// loadCheckpoint loads the checkpoint, or makes an empty tree.
func (r *recovery) loadCheckpoint() (err error) {
	begun := time.Now()
	note := r.cfg.note
	if r.chosen != "" {
		before, err := r.checkHead()
		if err != nil {
			return err
		}
		note = cmp.Or(note, before)
	}
	if r.tree, err = r.load(r.chosen, noteOf(note, r.info.Store)); err != nil {
		return r.ofCheckpoint(err)
	}
	if r.cols, err = r.tree.columns(); err != nil {
		return err
	}
	if r.found.Checkpoint = r.chosen; r.chosen != "" {
		m := r.tree.snapshot()
		r.found.CheckpointEntries = m.Len()
		m.Close()
		r.found.CheckpointTime = time.Since(begun)
		r.advance(r.found.CheckpointBytes)
	}
	return nil
}

// checkHead returns the user's note of the checkpoint, or an error if the log behind it is
// not of the same store.
func (r *recovery) checkHead() (note string, err error) {
	head, note, err := headOf(r.dir, r.chosen)
	if err == nil && head != r.info {
		err = fmt.Errorf("%w: it is of store %016x, with keys of type %s and values of type %s; the log is of store %016x, with %s and %s", pando.ErrFile,
			head.Store, head.Key, head.Value, r.info.Store, r.info.Key, r.info.Value)
	}
	return note, r.ofCheckpoint(err)
}

// ofCheckpoint returns an error with the name of the checkpoint, if there is one.
func (r *recovery) ofCheckpoint(err error) error {
	if err != nil && r.chosen != "" {
		err = fmt.Errorf("the checkpoint %s: %w", r.chosen, err)
	}
	return err
}

// suits returns an error for a store of other types.
func (r *recovery) suits() error {
	key, value := r.cols.Names()
	if r.info.Key != key || r.info.Value != value || r.info.ValSize != r.cols.ValueSize() {
		return fmt.Errorf("%w: %s has keys of type %s and values of type %s with %d bytes; it was opened for %s and %s with %d", pando.ErrType,
			folderName(r.dir), r.info.Key, r.info.Value, r.info.ValSize, key, value, r.cols.ValueSize())
	}
	return nil
}

// mostAtOnce is how many segments are in memory to be checked: a quarter of a GiB, and as much
// as disks give.
const mostAtOnce = 4

// check reads all segments, several at once, and finds the end of the log.
func (r *recovery) check() error {
	r.scans = make([]log.Scan, len(r.segments))
	r.whole = map[uint64]bool{}
	errs := make([]error, len(r.segments))
	par.Run(min(runtime.GOMAXPROCS(0), mostAtOnce), len(r.segments), par.Func(func(i int) { r.scans[i], errs[i] = r.checkOne(r.segments[i]) }))
	if err := r.connect(errs); err != nil {
		return err
	}
	for _, s := range r.scans {
		for _, b := range s.Commits {
			r.whole[b] = true
		}
	}
	r.refused = joined(r.refused)
	return nil
}

// joined returns refusals in order, those that touch as one.
func joined(all []refusal) (out []refusal) {
	slices.SortFunc(all, func(a, b refusal) int { return cmp.Compare(a.first, b.first) })
	for _, x := range all {
		if n := len(out); n > 0 && x.first <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, x.end)
		} else {
			out = append(out, x)
		}
	}
	return out
}

func (r *recovery) checkOne(segment uint64) (s log.Scan, err error) {
	data, err := r.read(segment)
	if err != nil {
		return s, err
	}
	info, err := log.ReadInfo(data, segment)
	if err == nil && info != r.info {
		err = &log.Bad{Name: log.Name(segment), Why: "this is the log of another store"}
	}
	if err != nil {
		return s, err
	}
	s, err = log.Read(data, &info, segment, func(f *log.Frame) error {
		if f.Kind == log.Refused {
			return r.addRefused(f, segment)
		}
		return nil
	})
	r.advance(int64(len(data)))
	return s, err
}

func (r *recovery) addRefused(f *log.Frame, segment uint64) error {
	if why := wellFormed(f); why != "" {
		return &log.Bad{Name: log.Name(segment), Offset: f.Offset, Why: why}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for b := f.Payload; len(b) > 0; b = b[16:] {
		first, count := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		r.refused = append(r.refused, refusal{first, first + count})
	}
	return nil
}

const goesOn = "the log ends here, and goes on in the next segment"

// connect compares the segments with each other: each but the last that was written to
// ends in a seal, and the next goes on with the next number. Behind the last there is
// nothing but headers and zeros.
func (r *recovery) connect(errs []error) error {
	next := r.next
	for i, s := range r.scans {
		if errs[i] != nil {
			return errs[i]
		}
		if s.Frames > 0 && s.First != next {
			return &log.Bad{Name: log.Name(r.segments[i]), Offset: int64(s.End), Why: fmt.Sprintf("it begins with operation %d, and %d was to come", s.First, next)}
		}
		if s.Frames > 0 {
			next = s.Next
		}
		if r.last = i; s.Sealed {
			if i+1 == len(r.scans) {
				return &log.Bad{Name: log.Name(r.segments[i] + 1), Why: "this part of the log is missing"}
			}
			continue
		}
		for j := i + 1; j < len(r.scans); j++ {
			if errs[j] != nil {
				return errs[j]
			}
			if r.scans[j].Frames > 0 || r.scans[j].Torn > 0 {
				return &log.Bad{Name: log.Name(r.segments[i]), Offset: s.End, Why: goesOn}
			}
		}
		break
	}
	r.next = next
	r.scans = r.scans[:r.last+1]
	end := r.scans[r.last]
	r.found.Segments, r.found.Torn, r.found.Clean = r.last+1, end.Torn, end.Closed
	for _, s := range r.scans {
		r.found.LogFrames += s.Frames
		r.found.LogBytes += s.End
	}
	return nil
}

// replay does the log again. While one segment is done, the next is read.
func (r *recovery) replay() error {
	type part struct {
		data []byte
		err  error
	}
	next := make(chan part, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for i := range r.scans {
			data, err := r.read(r.segments[i])
			select {
			case next <- part{data, err}:
			case <-stop:
				return
			}
		}
	}()
	p := replayer{recovery: r}
	if r.cols != nil {
		p.gathered = r.gather()
		defer func() { r.done(p.gathered) }()
	}
	for i := range r.scans {
		in := <-next
		if in.err != nil {
			return in.err
		}
		p.segment = r.segments[i]
		if _, err := log.Read(in.data, &r.info, p.segment, p.take); err != nil {
			return err
		}
		if err := p.flush(); err != nil { // what was gathered may lie in the segment
			return err
		}
		r.advance(int64(len(in.data)))
	}
	p.end()
	r.found.Void += p.void
	return nil
}

// replayer does frames again.
type replayer struct {
	*recovery
	batches
	segment  uint64
	gathered *index.Gathering
	passed   int // refusals before the frame that is done
}

// batches follows batches of several frames through the log.
type batches struct {
	open  bool   // one has parts, and no commit yet
	batch uint64 // which one
	parts int64  // operations of it
	void  int64  // operations of batches that have no commit
}

// wellFormed returns what is wrong with a frame by itself, or "".
func wellFormed(f *log.Frame) string {
	switch {
	case f.Kind == log.DeleteRange && f.Part:
		return "half a range"
	case f.Kind == log.DeleteRange && f.Count != 2:
		return fmt.Sprintf("a range has %d ends", f.Count)
	case f.Kind == log.Refused && len(f.Payload)%16 != 0:
		return "a frame of refused operations has an odd length"
	}
	return ""
}

// take takes the next frame, and returns what is wrong with it, or "".
func (b *batches) take(f *log.Frame) string {
	switch {
	case f.Part && b.open && f.Batch != b.batch:
		return "a batch begins within another"
	case f.Part:
		if !b.open {
			b.open, b.batch, b.parts = true, f.Batch, 0
		}
		b.parts += int64(f.Count)
	case f.Kind == log.Commit && (!b.open || b.batch != f.Batch):
		return "a batch ends that has not begun"
	case f.Kind == log.Commit:
		b.open = false
	case f.Kind == log.Open:
		b.end()
	case b.open && f.Kind != log.Seal:
		return "a batch has no end"
	}
	return wellFormed(f)
}

// end says that no more frames of a batch come.
func (b *batches) end() {
	if b.open {
		b.open = false
		b.void += b.parts
	}
}

// gatherUp is the number of operations that small frames are gathered up to before the tree gets
// them, and alone the number of those of a frame that it gets at once.
const (
	gatherUp = 64 << 10
	alone    = 8 << 10
)

func (p *replayer) bad(f *log.Frame, format string, args ...any) error {
	return &log.Bad{Name: log.Name(p.segment), Offset: f.Offset, Why: fmt.Sprintf(format, args...)}
}

// take does a frame again.
func (p *replayer) take(f *log.Frame) error {
	if why := p.batches.take(f); why != "" {
		return p.bad(f, "%s", why)
	}
	if f.Kind > log.LastChange || f.Count == 0 || f.Part && !p.whole[f.Batch] {
		return nil
	}
	return p.change(f)
}

// change does the operations of a frame again.
func (p *replayer) change(f *log.Frame) error {
	p.found.LogOperations += int64(f.Count)
	if p.cols == nil {
		return nil // Verify knows no types
	}
	kind, mixed := op.Set, f.Kind == log.Mixed
	if f.Kind == log.Delete || f.Kind == log.DeleteRange {
		kind = op.Delete
	}
	b, err := p.cols.Read(f.Payload, f.Count, kind, mixed)
	if err != nil {
		return p.bad(f, "%v", err)
	}
	switch refused := p.someRefused(f); {
	case refused && f.Kind == log.DeleteRange:
		return nil
	case f.Kind == log.DeleteRange:
		if err := p.flush(); err != nil {
			return err
		}
		_, err := p.tree.deleteRange(b.Keys)
		return err
	case refused:
		p.addAccepted(f, &b)
	case f.Count >= alone:
		if err := p.flush(); err != nil {
			return err
		}
		_, err := p.tree.apply(&b, nil)
		return err
	default:
		p.gathered.AddAll(&b)
	}
	if p.gathered.Len() >= gatherUp {
		return p.flush()
	}
	return nil
}

// someRefused reports whether the tree has refused operations of a frame. Frames come in
// their order.
func (p *replayer) someRefused(f *log.Frame) bool {
	for p.passed < len(p.refused) && p.refused[p.passed].end <= f.Sequence {
		p.passed++
	}
	return p.passed < len(p.refused) && p.refused[p.passed].first < f.Next()
}

// addAccepted gathers the operations of a frame that the tree has not refused.
func (p *replayer) addAccepted(f *log.Frame, b *index.Batch) {
	at := p.passed
	for i := range b.Len() {
		n := f.Sequence + uint64(i)
		for at < len(p.refused) && p.refused[at].end <= n {
			at++
		}
		if at < len(p.refused) && p.refused[at].first <= n {
			continue
		}
		kind := b.Kind
		if b.Kinds != nil {
			kind = b.Kinds[i]
		}
		val := index.Value{}
		if kind == op.Set {
			val = p.cols.ValOf(b.Vals, i)
		}
		p.gathered.Add(kind, b.Keys.Probe(i), val, nil)
	}
}

// flush gives the tree what was gathered.
func (p *replayer) flush() error {
	if p.gathered == nil || p.gathered.Len() == 0 {
		return nil
	}
	b := p.gathered.Batch()
	_, err := p.tree.apply(&b, nil)
	p.gathered.Reset()
	return err
}

// tidy removes what is in the folder and no longer needed. The names of what is needed
// are durable. What cannot be removed, since a reader has it open, say, harms nobody, and
// goes another time.
func (r *recovery) tidy() { r.remove(r.extra) }

func (r *recovery) remove(names []string) {
	for _, name := range names {
		r.dir.Remove(name)
	}
}
