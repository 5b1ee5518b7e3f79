package log

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandostore/internal/disk/crash"
)

var info = Info{Store: 7, Key: "uint64", Value: "encoded string", ValSize: 3}

// written returns a log of some frames, with payloads that say which they are, and where
// each begins in the first segment.
func written(t testing.TB, size int64, n int) (dir *crash.Folder, offsets []int64) {
	t.Helper()
	dir = crash.New()
	w, err := NewWriter(dir, info, size, Start{Segment: 1, Next: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		offsets = append(offsets, w.offset+int64(len(w.buf)))
		if err := w.End(append(w.Begin(), payload(i)...), Set, 1); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, offsets
}

func payload(i int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, i%50) }

// read returns the numbers of the frames of a segment.
func read(data []byte, segment uint64) (numbers []uint64, s Scan, err error) {
	if _, err := ReadInfo(data, segment); err != nil {
		return nil, s, err
	}
	s, err = Read(data, &info, segment, func(f *Frame) error {
		if f.Kind == Set {
			if !bytes.Equal(f.Payload, payload(int(f.Sequence-1))) {
				return fmt.Errorf("frame %d has another's payload", f.Sequence)
			}
			numbers = append(numbers, f.Sequence)
		}
		return nil
	})
	return numbers, s, err
}

// Frames come back in their order, through as many segments as they take.
func TestSegments(t *testing.T) {
	dir, _ := written(t, 5000, 200)
	next := uint64(1)
	for segment := uint64(1); ; segment++ {
		numbers, s, err := read(dir.Bytes(Name(segment)), segment)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range numbers {
			if n != next {
				t.Fatalf("frame %d, want %d", n, next)
			}
			next++
		}
		if !s.Sealed {
			if !s.Closed || next != 201 {
				t.Errorf("the last segment ends with frame %d, closed %t", next-1, s.Closed)
			}
			break
		}
	}
}

// Of a log that was closed, no byte can be changed, and no length cut, so that a frame
// is lost without an error.
func TestDamage(t *testing.T) {
	dir, offsets := written(t, 1<<13, 30)
	data := dir.Bytes(Name(1))
	want, whole, err := read(data, 1)
	if err != nil || len(want) != len(offsets) {
		t.Fatal(want, err)
	}
	for at := range data {
		b := slices.Clone(data)
		b[at] ^= 1 << (at % 8)
		got, _, err := read(b, 1)
		if err == nil && !slices.Equal(got, want) {
			t.Errorf("byte %d changed: %v", at, got)
		}
		if err != nil && at >= int(whole.End)-frameHeader {
			t.Errorf("byte %d changed, behind all frames that count: %v", at, err)
		}
		if _, _, err := read(data[:at], 1); err == nil {
			t.Errorf("cut at %d of %d bytes", at, len(data))
		}
	}
}

// A frame that lies anywhere but where it was written is none: not at another place, in
// another segment, or in another store.
func TestMovedFrame(t *testing.T) {
	dir, offsets := written(t, 1<<13, 30)
	data := dir.Bytes(Name(1))
	frame := data[offsets[20]:offsets[21]]
	for at := int64(HeaderSize); at+int64(len(frame)) <= int64(len(data)); at += 8 {
		b := make([]byte, len(data))
		copy(b[at:], frame)
		f, ok := frameAt(b, at, info.Store, 1)
		if ok = ok && f.whole(b, info.Store, 1); ok != (at == offsets[20]) {
			t.Errorf("a frame of byte %d is good at %d: %t", offsets[20], at, ok)
		}
		if f, ok := frameAt(b, at, info.Store+1, 1); ok && f.whole(b, info.Store+1, 1) {
			t.Error("a frame is good in another store")
		}
	}
	// In another segment, which says so in its header: only the seed tells them apart.
	b := slices.Clone(data)
	f, _ := frameAt(b, offsets[20], info.Store, 1)
	f.put(b[offsets[20]:], info.Store, 1)
	b[offsets[20]+atSegment] = 2
	if _, ok := frameAt(b, offsets[20], info.Store, 2); ok {
		t.Error("a frame is good in another segment")
	}
}

// What a frame says to be durable was synced: a damaged frame before it is no torn end.
func TestTornOrDamaged(t *testing.T) {
	dir := crash.New()
	w, err := NewWriter(dir, info, 1<<13, Start{Segment: 1, Next: 1})
	if err != nil {
		t.Fatal(err)
	}
	var offsets []int64
	for i := range 6 { // 0, 1 synced; 2, 3 and 4, 5 by one sync each
		offsets = append(offsets, w.offset+int64(len(w.buf)))
		if err := w.End(append(w.Begin(), payload(i)...), Set, 1); err != nil {
			t.Fatal(err)
		}
		if i == 1 || i == 3 {
			err = w.Sync()
		} else {
			err = w.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, offset := range offsets {
		b := slices.Clone(dir.Bytes(Name(1)))
		b[offset+atSequence] ^= 1
		got, s, err := read(b, 1)
		var bad *Bad
		if damaged := i < 4; errors.As(err, &bad) != damaged || s.End != offset || len(got) != i || s.Torn == 0 {
			t.Errorf("frame %d: %v, ends at %d, torn %d; %v", i, got, s.End, s.Torn, err)
		}
	}
	w.Abandon()
}

// Whatever the bytes are, a segment is read without a fault, and frames are in order.
func FuzzRead(f *testing.F) {
	dir, offsets := written(f, 1<<13, 12)
	data := dir.Bytes(Name(1))
	f.Add(data)
	f.Add(data[:offsets[5]])
	f.Add(data[HeaderSize:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := ReadInfo(b, 1); err == nil && len(i.Key) > 62 {
			t.Error("a name is longer than its place")
		}
		whole := append(info.header(1, HeaderSize), b...)
		end, next := int64(HeaderSize), uint64(0)
		s, _ := Read(whole, &info, 1, func(f *Frame) error {
			if f.Offset != end || next != 0 && f.Sequence != next {
				t.Errorf("frame %d at %d, want %d at %d", f.Sequence, f.Offset, next, end)
			}
			end, next = f.end(), f.Next()
			return nil
		})
		if s.End > int64(len(whole)) {
			t.Errorf("it ends at %d of %d bytes", s.End, len(whole))
		}
	})
}

// The same with damage that a fuzzer would take long to find: checksums that are right over
// bytes that are not.
func TestForged(t *testing.T) {
	rng := seed.Rand(t)
	for range seed.Times(2000, 100000) {
		dir, offsets := written(t, 1<<13, 8)
		b := dir.Bytes(Name(1))
		at := offsets[rng.IntN(len(offsets))]
		h := b[at : at+frameHeader]
		h[4+rng.IntN(frameHeader-4)] ^= byte(1 + rng.IntN(255))
		reseal(b, at)
		s, _ := Read(b, &info, 1, nil)
		if s.End > int64(len(b)) {
			t.Fatal("it ends behind the bytes")
		}
	}
}

// reseal makes the checksum of a header right.
func reseal(b []byte, at int64) {
	h := b[at : at+frameHeader]
	sum := crc32.Update(frameSeed(info.Store, 1, at), castagnoli, h[4:])
	binary.LittleEndian.PutUint32(h[atHeaderSum:], sum)
}

// A segment that could not be made ahead is made when it is needed, and then nobody makes it again: it
// may be gone by the time.
func TestNextSegmentIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := crash.New()
		w, err := NewWriter(dir, info, HeaderSize+1000, Start{Segment: 1, Next: 1})
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		dir.SetFail(func(_ int, what string) (f crash.Fault) {
			if what == "sync folder" {
				if made++; made == 1 {
					f.Err = syscall.EIO
				}
			}
			return f
		})
		for i := range 6 {
			if err := errors.Join(w.End(append(w.Begin(), payload(40+i%5)...), Set, 1), w.Sync()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if made != 1 {
			t.Fatalf("the next segment was begun %d times", made)
		}
		if err := errors.Join(w.End(append(w.Begin(), payload(1)...), Set, 1), w.Rotate()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if made != 2 {
			t.Errorf("the next segment was made %d times", made-1)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
