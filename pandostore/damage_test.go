package pandostore

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandostore/internal/disk/crash"
	"github.com/pando-index/pando/pandostore/internal/log"
)

// sample returns a store that was closed, with a checkpoint and a log behind it, and what is
// in it.
func sample[K pando.Key, V any](t *testing.T, w *world[K, V]) (dir *crash.Folder, want state) {
	t.Helper()
	l := newLife(t, w, 1, 1)
	l.opts = append(l.opts, func(c *config) { c.segment = 8 << 10 })
	s, err := open[K, V](l.fs, l.opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		want[i] = int32(i + 100)
		if err := s.Set(w.key(i), w.val(want[i])); err != nil {
			t.Fatal(err)
		}
		if i == 5 {
			if err := s.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var keys []K
	var vals []V
	for i := 10; i < keyspace; i++ {
		want[i] = int32(i + 200)
		keys, vals = append(keys, w.key(i)), append(vals, w.val(want[i]))
	}
	if err := errors.Join(s.SetBatch(keys, vals), s.Close()); err != nil {
		t.Fatal(err)
	}
	return l.fs, want
}

// Of a store that was closed, no byte can be changed and no file cut so that Open returns
// something else than before: it returns it all, or an error.
func TestDamage(t *testing.T) {
	t.Parallel()
	damage(t, &numbers)
	damage(t, &texts)
}

func damage[K pando.Key, V any](t *testing.T, w *world[K, V]) {
	t.Run(w.name, func(t *testing.T) {
		t.Parallel()
		dir, want := sample(t, w)
		names, _ := dir.Names()
		opts := []Option{CheckpointAfter(0), small}
		refused, rng := 0, seed.Rand(t)
		try := func(name string, data []byte, what string, at int) {
			image := dir.Clone()
			image.SetBytes(name, data)
			s, err := open[K, V](image, opts)
			if err != nil {
				refused++
				if !errors.Is(err, pando.ErrFile) && !errors.Is(err, pando.ErrVersion) {
					t.Errorf("%s, byte %d %s: %v", name, at, what, err)
				}
				return
			}
			if got := w.read(s); got != want {
				t.Errorf("%s, byte %d %s: %v, want %v", name, at, what, got, want)
			}
			s.Close()
		}
		for _, name := range names {
			data := dir.Bytes(name)
			step := seed.Step(1 + len(data)/150)
			for at := rng.IntN(step); at < len(data); at += step {
				b := slices.Clone(data)
				b[at] ^= 1 << rng.IntN(8)
				try(name, b, "changed", at)
				try(name, data[:at:at], "and all behind it cut off", at)
			}
			image := dir.Clone()
			if err := image.Remove(name); err != nil {
				t.Fatal(err)
			}
			if s, err := open[K, V](image, opts); err == nil {
				if got := w.read(s); got != want {
					t.Errorf("without %s: %v", name, got)
				}
				s.Close()
			}
		}
		if refused < 50 {
			t.Errorf("only %d were refused", refused)
		}
	})
}

// Salvage saves everything up to the damage, and its result opens.
func TestSalvage(t *testing.T) {
	t.Parallel()
	dir, want := sample(t, &numbers)
	names, _ := dir.Names()
	opts := []Option{CheckpointAfter(0), small}
	saved := 0
	for _, name := range names {
		segment, ok := log.Numbered(name)
		if !ok {
			continue
		}
		for at := 0; at < len(dir.Bytes(name)); at += seed.Step(31) {
			image, out := dir.Clone(), crash.New()
			image.Bytes(name)[at] ^= 4
			s, err := salvage(image, out)
			if later := errors.Is(translate(image, err), pando.ErrVersion); later && at/4 == 12/4 {
				continue
			}
			if err != nil {
				t.Errorf("segment %d, byte %d: %v", segment, at, err)
				continue
			}
			back, err := open[uint64, uint64](out, opts)
			if err != nil {
				t.Fatalf("segment %d, byte %d: what was saved does not open: %v", segment, at, err)
			}
			got := numbers.read(back)
			back.Close()
			if (got != want) != (s.Left > 0) && (got != want || s.Damage == nil) { // what is left need not hold a change
				t.Errorf("segment %d, byte %d: %v, %v, %d bytes are left", segment, at, got, s.Damage, s.Left)
			}
			if s.Damage == nil && got != want {
				t.Errorf("segment %d, byte %d: %v, and no damage", segment, at, got)
			}
			for i := range got { // single keys are set in their order, and then the batch
				if i < 6 && got[i] != want[i] || got[i] != 0 && got[i] != want[i] && got[i] != int32(i+100) {
					t.Errorf("segment %d, byte %d: key %d is %d", segment, at, i, got[i])
				}
			}
			saved++
		}
	}
	if saved < 50 {
		t.Errorf("only %d were saved", saved)
	}
}

// The same in a folder of the system, with its errors.
func TestSalvageFolder(t *testing.T) {
	dir := t.TempDir()
	s, err := Open[string, int64](filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"a", "b", "c"} {
		if err := s.Set(k, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Checkpoint(), s.Set("d", 2), s.Set("e", 3), s.Close()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "store", log.Name(2))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[4096+64] ^= 1 // in the frame of d
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err = Open[string, int64](filepath.Join(dir, "store")); !errors.Is(err, pando.ErrFile) || !strings.Contains(err.Error(), log.Name(2)) || !strings.Contains(err.Error(), "Salvage") {
		t.Fatal(err)
	}
	got, err := Salvage(filepath.Join(dir, "store"), filepath.Join(dir, "saved"))
	if err != nil || got.Damage == nil || got.Checkpoint == "" {
		t.Fatal(got, err)
	}
	if want := int64(len(bytes.TrimRight(data, "\x00")) - 4096); got.Left != want {
		t.Errorf("%d bytes are left, want %d", got.Left, want)
	}
	s, err = Open[string, int64](filepath.Join(dir, "saved"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := s.Len(); n != 3 || s.Has("d") {
		t.Errorf("%d entries were saved", n)
	}
	if _, err := Salvage(filepath.Join(dir, "store"), dir); !errors.Is(err, pando.ErrOption) {
		t.Error("into a folder that is not empty: ", err)
	}
}

// If the newest checkpoint is damaged, an older one and the log behind it serve as well, and so does
// the whole log. Without them nothing does. What is read is not changed, not even by a
// file LOCK.
func TestSalvageCheckpoint(t *testing.T) {
	for _, c := range []struct {
		name string
		keep func(name string) bool
		want int // entries, -1 if nothing can be saved
	}{
		{"an older one", func(name string) bool { return name != log.Name(1) }, 4},
		{"all of the log", func(name string) bool { _, _, ok := checkpointOf(name); return !ok }, 4},
		{"an older one and some of the log", func(name string) bool { return name != log.Name(1) && name != log.Name(3) }, 2},
		{"nothing", func(string) bool { return false }, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, older := filepath.Join(t.TempDir(), "store"), t.TempDir()
			s, err := Open[string, int64](dir)
			if err != nil {
				t.Fatal(err)
			}
			step := func(key string) {
				if err := s.Set(key, 1); err != nil {
					t.Fatal(err)
				}
				linkAll(t, dir, older)
				if err := s.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			step("a")
			step("b")
			linkAll(t, dir, older)
			step("c")
			if err := errors.Join(s.Set("d", 1), s.Close()); err != nil {
				t.Fatal(err)
			}
			entries, _ := os.ReadDir(older)
			for _, e := range entries {
				if _, err := os.Stat(filepath.Join(dir, e.Name())); err != nil && c.keep(e.Name()) {
					data, _ := os.ReadFile(filepath.Join(older, e.Name()))
					os.WriteFile(filepath.Join(dir, e.Name()), data, 0o666)
				}
			}
			newest, _ := newestCheckpoint(dir, func(file string) (string, error) { return file, nil })
			data, _ := os.ReadFile(newest)
			data[len(data)/2] ^= 1
			os.WriteFile(newest, data, 0o666)
			os.Remove(filepath.Join(dir, "LOCK"))
			before := namesIn(t, dir)

			if _, err := Verify(dir); !errors.Is(err, pando.ErrFile) || !strings.Contains(err.Error(), filepath.Base(newest)) {
				t.Errorf("Verify: %v", err)
			}
			out := filepath.Join(t.TempDir(), "saved")
			got, err := Salvage(dir, out)
			if after := namesIn(t, dir); !slices.Equal(before, after) {
				t.Errorf("%v has become %v", before, after)
			}
			if c.want < 0 {
				if !errors.Is(err, pando.ErrFile) {
					t.Error(got, err)
				}
				return
			}
			if err != nil || got.Damage == nil {
				t.Fatal(got, err)
			}
			back, err := Open[string, int64](out)
			if err != nil {
				t.Fatal(err)
			}
			defer back.Close()
			if back.Len() != c.want {
				t.Errorf("%d entries, want %d: %+v", back.Len(), c.want, got)
			}
		})
	}
}

// A checkpoint that is whole is saved also if the log right behind it is damaged, or missing:
// the checkpoint knows its store and the types.
func TestSalvageCheckpointAlone(t *testing.T) {
	for name, damage := range map[string]func(fs *crash.Folder, segment string){
		"header":  func(fs *crash.Folder, segment string) { fs.Bytes(segment)[100] ^= 1 },
		"short":   func(fs *crash.Folder, segment string) { fs.SetBytes(segment, fs.Bytes(segment)[:50]) },
		"missing": func(fs *crash.Folder, segment string) { fs.Remove(segment) },
	} {
		t.Run(name, func(t *testing.T) {
			fs, out := crash.New(), crash.New()
			s := must[uint64, uint64](t, fs, small, CheckpointAfter(0), Note("mine"))
			for i := range uint64(100) {
				try(t, s.Set(i, i))
			}
			try(t, s.Checkpoint(), s.Set(1000, 1), s.Checkpoint(), s.Set(1001, 1), s.Close())
			names, err := fs.Names()
			try(t, err)
			segment, next, _ := checkpointOf(names[0])
			damage(fs, log.Name(segment))
			got, err := salvage(fs, out)
			var bad *log.Bad
			if err != nil || got.Checkpoint != names[0] || got.Next != next || !errors.As(got.Damage, &bad) || bad.Name != log.Name(segment) {
				t.Fatalf("%+v, %v", got, err)
			}
			s = must[uint64, uint64](t, out, small, CheckpointAfter(0))
			if s.Len() != 101 {
				t.Errorf("%d entries", s.Len())
			}
			try(t, s.Set(1001, 1), s.Checkpoint(), s.Close())
			names, err = out.Names()
			try(t, err)
			if _, note, err := headOf(out, names[0]); note != "mine" {
				t.Errorf("the note is %q, %v", note, err)
			}
		})
	}
}

// A log of a later version is no damage, and nothing is cut away.
func TestSalvageLater(t *testing.T) {
	fs := crash.New()
	s := must[uint64, uint64](t, fs, small, CheckpointAfter(0))
	try(t, s.Set(1, 1), s.Checkpoint(), s.Close())
	names, err := fs.Names()
	try(t, err)
	segment, _, _ := checkpointOf(names[0])
	fs.Bytes(log.Name(segment))[12] = 99
	if got, err := salvage(fs, crash.New()); !errors.Is(translate(fs, err), pando.ErrVersion) {
		t.Errorf("%+v, %v", got, err)
	}
}

// linkAll gives the files of a folder a name in another as well, where they stay when they are
// removed from the first.
func linkAll(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range namesIn(t, from) {
		err := os.Link(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			t.Skip("no links here: ", err)
		}
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Inspect and Verify say what is in a folder. They change nothing, and Inspect is for stores
// in use, too.
func TestInspectVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := Inspect(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("no folder: ", err)
	}
	s, err := Open[string, int64](dir, Note("of a test"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := Inspect(dir)
	if err != nil || info.Key != "string" || info.Value != "int64" || info.Segments != 1 || info.Checkpoint != nil {
		t.Error(info, err)
	}
	if err := errors.Join(s.Set("a", 1), s.Checkpoint(), s.SetBatch([]string{"b", "c"}, []int64{2, 3})); err != nil {
		t.Fatal(err)
	}
	info, err = Inspect(dir)
	if err != nil || info.Checkpoint == nil || info.Checkpoint.Len != 1 || info.Note != "of a test" {
		t.Error(info, err)
	}
	if _, err := Verify(dir); !errors.Is(err, ErrLocked) {
		t.Error("in use: ", err)
	}
	os.Remove(filepath.Join(dir, "LOCK"))
	if _, err := Verify(dir); !errors.Is(err, ErrLocked) && (runtime.GOOS == "linux" || runtime.GOOS == "darwin") {
		t.Error("in use, its lock file removed: ", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := Verify(dir)
	if err != nil || found.CheckpointEntries != 1 || found.LogOperations != 2 || !found.Clean {
		t.Errorf("%+v: %v", found, err)
	}
	file := filepath.Join(dir, log.Name(2))
	data, _ := os.ReadFile(file)
	data[4096+64] ^= 1
	os.WriteFile(file, data, 0o666)
	if _, err := Verify(dir); !errors.Is(err, pando.ErrFile) || !strings.Contains(err.Error(), log.Name(2)) {
		t.Error("damaged: ", err)
	}
	for _, look := range []func(string) error{
		func(p string) error { _, err := Inspect(p); return err },
		func(p string) error { _, err := Verify(p); return err },
	} {
		empty := t.TempDir()
		if err := look(empty); !errors.Is(err, pando.ErrFile) {
			t.Error("an empty folder: ", err)
		}
		os.WriteFile(filepath.Join(empty, "a.txt"), nil, 0o666)
		if err := look(empty); !errors.Is(err, pando.ErrFile) || len(namesIn(t, empty)) != 1 {
			t.Error("a folder of others: ", err)
		}
	}
}
