package log

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandostore/internal/disk"
)

// SegmentSize is the usual size of a segment. One that holds a longer frame is longer.
const SegmentSize = 64 << 20

const (
	// flushAt is the number of bytes at which frames are written.
	flushAt = 1 << 20
	// firstZeros is the length of the first segment when it is made, which somebody waits
	// for.
	firstZeros = 4 << 20
	// keptBuffer is the largest buffer that is kept for the next frames.
	keptBuffer = 8 << 20
)

// Writer appends frames to a log. One goroutine at a time may use it, but for Sync, which
// may run beside the others.
type Writer struct {
	dir  disk.Folder
	info Info
	size int64

	file    disk.File
	segment uint64
	offset  int64  // where the next write goes
	next    uint64 // number of the next operation
	buf     []byte // frames that are not written yet
	batch   uint64 // number of the first operation of the batch under way
	begun   bool   // parts of it are written

	written atomic.Int64  // bytes of frames, in all segments
	logged  atomic.Uint64 // next, for those who look on

	syncing sync.Mutex // held while a file is synced, so that none is closed meanwhile
	mu      sync.Mutex // guards what follows
	synced  disk.File  // the file that is written to
	end     int64      // up to here it is written
	durable int64      // and up to here it is synced
	failed  error      // of a write or a sync: final, since a later sync may succeed and what was to be written be lost

	spare *spare
}

// Start is where a Writer begins.
type Start struct {
	Segment uint64
	Offset  int64  // behind the last whole frame; 0 if the segment is to be made
	Next    uint64 // number of the next operation
	Durable int64  // what the frames before it say
	Torn    int64  // bytes behind Offset that are to be cleared
	Before  *Start // the segment before, if no frame is in this one: then its end may not be durable either
}

// NewWriter returns a Writer that goes on where a log ends. When it returns, all before is
// durable, and an Open frame says so. Where that frame alone cannot be written, since the
// disk is full, say, the Writer is Broken from the beginning.
func NewWriter(dir disk.Folder, info Info, segmentSize int64, at Start) (_ *Writer, err error) {
	w := &Writer{dir: dir, info: info, size: max(segmentSize, HeaderSize+4*frameHeader), segment: at.Segment, next: at.Next}
	if at.Offset == 0 {
		err := prepare(dir, &info, at.Segment, min(w.size, firstZeros), nil)
		if err != nil {
			err = prepare(dir, &info, at.Segment, HeaderSize, nil)
		}
		if err != nil {
			return nil, err
		}
		at.Offset, at.Durable = HeaderSize, HeaderSize
	}
	if w.file, err = dir.Open(Name(at.Segment)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	if at.Before != nil {
		if err := renewBefore(dir, at.Before); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(renew(w.file, &at), syncNames(dir)); err != nil {
		return nil, err
	}
	w.use(w.file, at.Offset)
	opened := w.End(w.Begin(), Open, 0)
	if opened == nil {
		opened = w.Sync()
	}
	if opened != nil {
		w.fail(opened)
	}
	return w, nil
}

// renew makes the end of a log durable. What a dead process has written may be in the
// system's memory alone, and a sync that failed makes the system forget that it is not on
// disk: so frames are written once more that no later frame calls durable. What is behind
// the last whole frame is cleared, so that no frame of it can ever follow a new one.
func renew(f disk.File, at *Start) error {
	if n := at.Offset - at.Durable; n > 0 && !(mutant.On && mutant.Is("store: written again")) {
		b := make([]byte, n)
		if _, err := f.ReadAt(b, at.Durable); err != nil {
			return err
		}
		if err := writeAt(f, b, at.Durable); err != nil {
			return err
		}
	}
	if mutant.On && mutant.Is("store: torn end cleared") {
		return f.Sync()
	}
	if err := clearFrom(f, at.Offset, at.Torn); err != nil {
		return err
	}
	return f.Sync()
}

// renewBefore makes the end of a segment durable that the log has gone on from.
func renewBefore(dir disk.Folder, at *Start) error {
	f, err := dir.Open(Name(at.Segment))
	if err != nil {
		return err
	}
	return errors.Join(renew(f, at), f.Close())
}

// clearFrom writes n zeros, from the last to the first, so that a frame is gone before those
// that it follows.
func clearFrom(f disk.File, at, n int64) error {
	zeros := make([]byte, min(n, flushAt))
	for n > 0 {
		m := min(n, int64(len(zeros)))
		n -= m
		if err := writeAt(f, zeros[:m], at+n); err != nil {
			return err
		}
	}
	return nil
}

func writeAt(f disk.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	return err
}

// use makes a file the one that is written to.
func (w *Writer) use(f disk.File, offset int64) {
	w.file, w.offset = f, offset
	w.mu.Lock()
	w.synced, w.end, w.durable = f, offset, offset
	w.mu.Unlock()
}

// ahead begins to make the next segment.
func (w *Writer) ahead() {
	if w.spare == nil {
		w.spare = prepareLater(w.dir, &w.info, w.segment+1, w.size)
	}
}

// Place returns the segment that is written to, and the number of the next operation.
func (w *Writer) Place() (segment, next uint64) { return w.segment, w.next }

// Written returns the bytes of all frames so far. It may be called beside other methods.
func (w *Writer) Written() int64 { return w.written.Load() }

// Next returns the number of the next operation. It may be called beside other methods.
func (w *Writer) Next() uint64 { return w.logged.Load() }

// Begin returns where a frame is to be appended to: its payload goes behind, and the result
// to End. Its length is aligned.
func (w *Writer) Begin() []byte { return append(w.buf, make([]byte, frameHeader)...) }

// End ends a frame that has count operations. An error is final.
func (w *Writer) End(b []byte, kind FrameKind, count int) error {
	return w.appendFrame(b, Frame{Kind: kind, Count: count})
}

// EndPart is End for a frame of a batch that has more than one. Commit ends the batch: what
// has no Commit is void after a crash.
func (w *Writer) EndPart(b []byte, kind FrameKind, count int) error {
	if mutant.On && mutant.Is("store: commit frame") {
		return w.End(b, kind, count)
	}
	if !w.begun {
		w.begun, w.batch = true, w.next
	}
	return w.appendFrame(b, Frame{Kind: kind, Count: count, Part: true, Batch: w.batch})
}

// Commit ends the batch under way.
func (w *Writer) Commit() error {
	if !w.begun {
		return nil
	}
	w.begun = false
	return w.appendFrame(w.Begin(), Frame{Kind: Commit, Batch: w.batch})
}

func (w *Writer) appendFrame(b []byte, f Frame) error {
	begin := len(w.buf)
	f.Payload = b[begin+frameHeader:]
	if len(f.Payload) > MostPayload {
		return errors.New("a frame is too long")
	}
	need := size(len(f.Payload))
	b = append(b, make([]byte, begin+int(need)-len(b))...)
	w.buf = b[:begin]
	if w.offset+int64(begin)+need+frameHeader > w.size && w.offset+int64(begin) > HeaderSize {
		// The frame lies behind the buffer's end, where rotate must leave it alone.
		keep := append([]byte(nil), b[begin:]...)
		if err := w.Rotate(); err != nil {
			return w.fail(err)
		}
		begin, b = 0, append(w.buf[:0], keep...)
		f.Payload = b[frameHeader : frameHeader+len(f.Payload)]
	}
	w.put(b[begin:], &f, int64(begin))
	w.buf = b
	if len(b) >= flushAt {
		return w.Flush()
	}
	return nil
}

// put completes a frame that will be written at a distance from the offset.
func (w *Writer) put(b []byte, f *Frame, distance int64) {
	w.mu.Lock()
	f.Durable = w.durable
	w.mu.Unlock()
	f.Sequence, f.Offset = w.next, w.offset+distance
	f.put(b, w.info.Store, w.segment)
	w.next += uint64(f.Count)
	w.logged.Store(w.next)
	w.written.Add(int64(len(b)))
}

// Flush writes the frames so far.
func (w *Writer) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	if err := w.Broken(); err != nil {
		return err
	}
	if err := writeAt(w.file, w.buf, w.offset); err != nil {
		return w.fail(err)
	}
	if w.offset += int64(len(w.buf)); w.offset > w.size/2 {
		w.ahead()
	}
	w.mu.Lock()
	w.end = w.offset
	w.mu.Unlock()
	if w.buf = w.buf[:0]; cap(w.buf) > keptBuffer {
		w.buf = nil
	}
	return nil
}

// fail makes an error final.
func (w *Writer) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil && !(mutant.On && mutant.Is("store: failure is final")) {
		w.failed = err
	}
	return err
}

// Broken returns the error of a write or a sync that has failed: nothing is written any
// more. It may be called beside other methods.
func (w *Writer) Broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// Sync writes the frames so far, and makes them durable.
func (w *Writer) Sync() error {
	if err := w.Flush(); err != nil {
		return err
	}
	return w.SyncWritten()
}

// SyncWritten makes durable what was written. It may be called beside other methods.
func (w *Writer) SyncWritten() error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	f, end, durable, failed := w.synced, w.end, w.durable, w.failed
	w.mu.Unlock()
	if failed != nil || end == durable {
		return failed
	}
	if err := f.Sync(); err != nil {
		return w.fail(err)
	}
	w.mu.Lock()
	w.durable = max(w.durable, end)
	w.mu.Unlock()
	return nil
}

// Rotate goes on in the next segment. The one before is durable then: a torn end can only
// be that of the last. If there is no next segment to be had, nothing has happened, and the
// Writer is not Broken.
func (w *Writer) Rotate() error {
	if err := w.Broken(); err != nil {
		return err
	}
	next, err := w.takeSpare()
	if err != nil {
		return err
	}
	begin := len(w.buf)
	b := w.Begin()
	w.put(b[begin:], &Frame{Kind: Seal}, int64(begin))
	w.buf = b
	sync := w.Sync
	if mutant.On && mutant.Is("store: segment synced") {
		sync = w.Flush
	}
	if err := sync(); err != nil {
		return errors.Join(err, next.Close())
	}
	w.syncing.Lock()
	defer w.syncing.Unlock()
	old := w.file
	w.segment++
	w.spare = nil
	w.use(next, HeaderSize)
	return old.Close()
}

// takeSpare waits for the next segment, and opens it. If it could not be made, since the
// disk was full, say, it is made now, as short as can be.
func (w *Writer) takeSpare() (disk.File, error) {
	w.ahead()
	if err := w.spare.wait(); err != nil {
		if err := prepare(w.dir, &w.info, w.segment+1, HeaderSize, nil); err != nil {
			w.spare = nil
			return nil, err
		}
		w.spare.err = nil // it stays, or the last frames of this segment would begin to make it once more
	}
	return w.dir.Open(w.spare.name)
}

// Close says that the program has ended well, and closes the files. It must not run beside
// other methods.
func (w *Writer) Close() error {
	err := w.Sync() // first, so that the frame says that all before it is durable
	if err == nil {
		err = w.End(w.Begin(), Close, 0)
	}
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.stop())
}

// Abandon closes the files after an error.
func (w *Writer) Abandon() { w.stop() }

func (w *Writer) stop() error {
	var err error
	if w.spare != nil {
		w.spare.wait()
	}
	if w.file != nil {
		err = w.file.Close()
	}
	return err
}

// spare is the next segment, which is made in the background.
type spare struct {
	needed sync.Once
	hurry  chan struct{} // closed when it is needed
	done   chan struct{} // closed when it is there
	name   string
	err    error
}

// wait waits until the segment is there.
func (s *spare) wait() error {
	s.needed.Do(func() { close(s.hurry) })
	<-s.done
	return s.err
}

func prepareLater(dir disk.Folder, info *Info, segment uint64, size int64) *spare {
	s := &spare{hurry: make(chan struct{}), done: make(chan struct{}), name: Name(segment)}
	go func() {
		defer close(s.done)
		s.err = prepare(dir, info, segment, size, s.hurry)
	}()
	return s
}

// zeroStep is the number of bytes that are cleared at a time.
const zeroStep = 1 << 20

// prepare makes a segment: its header, and zeros behind it, since to sync a write into a
// file as long as before is faster. The file gets its name when it is durable, and the
// name is durable when prepare returns. Once hurry is closed it leaves out what is left of the zeros.
func prepare(dir disk.Folder, info *Info, segment uint64, size int64, hurry <-chan struct{}) error {
	name := Name(segment)
	if f, err := dir.Open(name); err == nil { // by a program that has ended since, and may not have synced the folder
		return errors.Join(f.Close(), syncNames(dir))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temporary := name + Temporary
	dir.Remove(temporary) // if it is there; if it stays, Create says so
	f, err := dir.Create(temporary)
	if err != nil {
		return err
	}
	err = fill(f, info, segment, size, hurry)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = dir.Rename(temporary, name)
	}
	if err != nil {
		dir.Remove(temporary) // it takes what little room there is
		return err
	}
	return syncNames(dir)
}

// syncNames makes the names in a folder durable.
func syncNames(dir disk.Folder) error {
	if mutant.On && mutant.Is("store: folder") {
		return nil
	}
	return dir.Sync()
}

// Temporary is how the names of files end that are being made.
const Temporary = ".tmp"

// fill writes zeros, at a pace that leaves most of the disk to others, and then the
// header, which says how many there are.
func fill(f disk.File, info *Info, segment uint64, size int64, hurry <-chan struct{}) error {
	zeros := make([]byte, min(size, zeroStep))
	at := int64(HeaderSize)
	for enough := false; at < size && !enough; {
		begin := time.Now()
		n := min(size-at, int64(len(zeros)))
		if err := writeAt(f, zeros[:n], at); err != nil {
			return err
		}
		if at += n; hurry == nil || at >= size {
			continue
		}
		select {
		case <-hurry:
			enough = true
		case <-time.After(3 * time.Since(begin)):
		}
	}
	if err := writeAt(f, info.header(segment, uint64(at)), 0); err != nil || mutant.On && mutant.Is("store: file before name") {
		return err
	}
	return f.Sync()
}

// AppendRefused appends operations that a tree has refused to the payload of a Refused frame.
func AppendRefused(b []byte, first uint64, count int) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, first), uint64(count))
}

// Copy makes a segment of the frames of another, the first bytes of which up to end are data.
func Copy(dir disk.Folder, info Info, segment uint64, data []byte, end int64) error {
	if err := prepare(dir, &info, segment, end, nil); err != nil || end <= HeaderSize {
		return err
	}
	f, err := dir.Open(Name(segment))
	if err != nil {
		return err
	}
	err = writeAt(f, data[HeaderSize:end], HeaderSize)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
