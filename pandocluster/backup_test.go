package pandocluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandocluster/internal/packet"
	"github.com/pando-index/pando/pandoserver"
)

// store is an object store in memory.
type store struct {
	mu    sync.Mutex
	files map[string][]byte
	slow  time.Duration                               // what a file takes
	fail  func(name string, r io.Reader) (int, error) // of Put, if it is set: how much it reads before it fails
}

func (s *store) Put(ctx context.Context, name string, r io.Reader) error {
	s.mu.Lock()
	_, there := s.files[name]
	s.mu.Unlock()
	if there {
		return fs.ErrExist
	}
	time.Sleep(s.slow)
	if s.fail != nil {
		if n, err := s.fail(name, r); err != nil {
			_, _ = io.CopyN(io.Discard, r, int64(n))
			return err
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string][]byte{}
	}
	s.files[name] = b
	return nil
}

func (s *store) Get(_ context.Context, name string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (s *store) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, name)
	return nil
}

// groups are keys that are set together: splits do not come between them.
const groups, ofGroup = "bdfhkm", 20

func groupKeys(g byte) (keys []string) {
	for i := range ofGroup {
		keys = append(keys, fmt.Sprintf("%c%03d/%s", g, i, strings.Repeat("x", 100)))
	}
	return keys
}

func setGroup(n *Node, g byte, val int) error {
	keys := groupKeys(g)
	ops, vals := make([]pando.Op, len(keys)), make([][]byte, len(keys))
	for i := range keys {
		ops[i], vals[i] = pando.OpSet, fmt.Appendf(nil, "%d", val)
	}
	return n.Apply(ops, keys, vals, nil)
}

// all returns what a cluster has.
func all(n *Node) map[string]string {
	has := map[string]string{}
	for k, v := range n.Scan(pandoserver.Bounds{}) {
		has[k] = string(v)
	}
	return has
}

// A backup that is taken while clients write, ranges split, and nodes end has all that was acknowledged before, and no batch in it half.
// It is restored into clusters of other sizes, and taken from these again it is the same.
func TestBackup(t *testing.T) {
	in(t, true, "abcd", func(w *world, at func(string) *Node) {
		var acked, tried [len(groups)]atomic.Int64
		stop := make(chan struct{})
		var clients sync.WaitGroup
		for i := range len(groups) {
			if err := setGroup(at("a"), groups[i], 1); err != nil {
				t.Fatal(err)
			}
			acked[i].Store(1)
			clients.Go(func() {
				for val := 2; ; val++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(1 + w.chance(int(beat)))):
					}
					tried[i].Store(int64(val))
					if setGroup(at("a"), groups[i], val) == nil {
						acked[i].Store(int64(val))
					}
				}
			})
		}
		clients.Go(func() {
			for i := range 6 {
				ctx, cancel := context.WithTimeout(context.Background(), 20*beat)
				_ = at("a").Do(ctx, Step{Kind: Split, Key: groups[i : i+1]})
				cancel()
				c := w.all["bcd"[i%3:i%3+1]]
				c.kill()
				time.Sleep(5 * beat)
				c.start()
				time.Sleep(5 * beat)
			}
		})
		for range 4 {
			var before [len(groups)]int64
			for i := range acked {
				before[i] = acked[i].Load()
			}
			to := &store{slow: beat / 2}
			b, err := at("a").Backup(context.Background(), to)
			if err != nil {
				if len(to.files) > 0 {
					t.Errorf("a backup that failed has left %v", slices.Collect(maps.Keys(to.files)))
				}
				time.Sleep(5 * beat)
				continue
			}
			has := filesOf(t, to, b)
			for i := range len(groups) {
				vals := map[string]bool{}
				for _, k := range groupKeys(groups[i]) {
					vals[has[k]] = true
				}
				for v := range vals {
					if n, err := strconv.ParseInt(v, 10, 64); err != nil || len(vals) > 1 || n < before[i] || n > tried[i].Load() {
						t.Errorf("group %c has %v: %d was acknowledged before", groups[i], vals, before[i])
					}
				}
			}
		}
		close(stop)
		clients.Wait()
		if err := w.whole(2); err != nil {
			t.Fatal(err)
		}

		to := &store{}
		b, err := at("c").Backup(context.Background(), to)
		if err != nil {
			t.Fatal(err)
		}
		want := all(at("a"))
		if keys, size := b.Size(); keys != int64(len(want)) || size < keys*100 || len(b.Ranges) < 3 {
			t.Errorf("%+v of %d keys", b, len(want))
		}
		for _, names := range []string{"x", "vwxyz"} {
			other := another(w)
			other.plans = len(names) > 1
			for i := range len(names) {
				if i == 0 {
					other.add(names[:1])
				} else {
					other.add(names[i:i+1], names[:1])
				}
			}
			x := other.all["x"].node.Load()
			if _, err := x.Restore(context.Background(), to); err != nil {
				t.Fatal(err)
			}
			if got := all(x); !maps.Equal(got, want) {
				t.Errorf("%d keys were restored, not %d", len(got), len(want))
			}
			again := &store{}
			c, err := x.Backup(context.Background(), again)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Ranges) != len(b.Ranges) {
				t.Errorf("%d ranges were restored, not %d", len(c.Ranges), len(b.Ranges))
			}
			for i, r := range c.Ranges {
				if i < len(b.Ranges) && r.SHA256 != b.Ranges[i].SHA256 {
					t.Errorf("%+v, and %+v before", r, b.Ranges[i])
				}
			}
			if _, err := x.Restore(context.Background(), to); !errors.Is(err, ErrNotEmpty) {
				t.Errorf("into a cluster with keys: %v", err)
			}
			other.close()
		}
	})
}

// filesOf reads the files of a backup, as anybody can.
func filesOf(t *testing.T, s *store, b Backup) map[string]string {
	t.Helper()
	has := map[string]string{}
	for _, r := range b.Ranges {
		f, err := pando.ReadBytes[string, []byte](s.files[r.File])
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range f.All() {
			has[k] = string(v)
		}
		f.Close()
	}
	return has
}

// Of files that are no whole backup nothing is restored.
func TestBadBackup(t *testing.T) {
	in(t, false, "a", func(w *world, at func(string) *Node) {
		for i := range len(groups) {
			if err := setGroup(at("a"), groups[i], i); err != nil {
				t.Fatal(err)
			}
		}
		for i := 1; i < len(groups); i += 2 {
			w.do(at("a"), Step{Kind: Split, Key: groups[i : i+1]})
		}
		good := &store{}
		b, err := at("a").Backup(context.Background(), good)
		if err != nil || len(b.Ranges) != 4 {
			t.Fatal(b, err)
		}
		if _, err := at("a").Backup(context.Background(), good); !errors.Is(err, fs.ErrExist) || len(good.files) != 5 {
			t.Errorf("over another one: %v", err)
		}
		other := another(w)
		defer other.close()
		x := other.add("x").node.Load()
		time.Sleep(10 * beat) // until it has told the map
		last := b.Ranges[3].File
		for name, change := range map[string]func(files map[string][]byte){
			"no list":     func(f map[string][]byte) { delete(f, backupName) },
			"half a list": func(f map[string][]byte) { f[backupName] = f[backupName][:len(f[backupName])/2] },
			"a later version": func(f map[string][]byte) {
				f[backupName] = bytes.Replace(f[backupName], []byte(`"version": 1`), []byte(`"version": 2`), 1)
			},
			"a file less":   func(f map[string][]byte) { delete(f, last) },
			"half a file":   func(f map[string][]byte) { f[last] = f[last][:len(f[last])/2] },
			"a longer file": func(f map[string][]byte) { f[last] = append(bytes.Clone(f[last]), 0) },
			"another byte": func(f map[string][]byte) {
				f[last] = bytes.Clone(f[last])
				f[last][len(f[last])/2]++
			},
			"two files exchanged": func(f map[string][]byte) { f[last], f[b.Ranges[2].File] = f[b.Ranges[2].File], f[last] },
			"a gap": func(f map[string][]byte) {
				f[backupName] = bytes.Replace(f[backupName], []byte(`"lo": "ZA=="`), []byte(`"lo": "ZQ=="`), 1)
			},
			"a file elsewhere": func(f map[string][]byte) {
				f[backupName] = bytes.Replace(f[backupName], []byte(last), []byte("../"+last), 1)
			},
		} {
			bad := &store{files: maps.Clone(good.files)}
			change(bad.files)
			_, err := x.Restore(context.Background(), bad)
			p, failed := x.Picture(context.Background())
			if !errors.Is(err, ErrBackup) || failed != nil || len(p.Ranges) != 2 || x.Len() != 0 {
				t.Errorf("%s: %v; %d keys in %d ranges, %v", name, err, x.Len(), len(p.Ranges), failed)
			}
		}
		if _, err := x.Restore(context.Background(), good); err != nil || !maps.Equal(all(x), all(at("a"))) {
			t.Errorf("%d keys, %v", x.Len(), err)
		}
	})
}

// A backup that cannot be written, or whose cluster is gone, says so, and leaves nothing.
func TestFailedBackup(t *testing.T) {
	in(t, false, "ab", func(w *world, at func(string) *Node) {
		if err := setGroup(at("a"), 'b', 1); err != nil {
			t.Fatal(err)
		}
		w.do(at("a"), Step{Kind: Split, Key: "b010"})
		broken := errors.New("the disk is full")
		s := &store{fail: func(name string, _ io.Reader) (int, error) {
			if name == "range-000002.pando" {
				return 100, broken
			}
			return 0, nil
		}}
		if _, err := at("a").Backup(context.Background(), s); !errors.Is(err, broken) || len(s.files) > 0 {
			t.Errorf("%v, and %d files", err, len(s.files))
		}
		s.fail = func(name string, _ io.Reader) (int, error) {
			if name == backupName {
				return 0, broken
			}
			return 0, nil
		}
		if _, err := at("a").Backup(context.Background(), s); !errors.Is(err, broken) || len(s.files) > 0 {
			t.Errorf("%v, and %d files", err, len(s.files))
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.fail = func(name string, _ io.Reader) (int, error) {
			if name == "range-000002.pando" {
				cancel()
			}
			return 0, nil
		}
		if _, err := at("a").Backup(ctx, s); err == nil || len(s.files) > 0 {
			t.Errorf("called off: %v, and %d files", err, len(s.files))
		}
		s.fail = func(name string, _ io.Reader) (int, error) {
			if name == "range-000002.pando" {
				w.setCut("a", "b", true)
			}
			return 0, nil
		}
		if _, err := at("b").Backup(context.Background(), s); err == nil || len(s.files) > 0 {
			t.Errorf("cut off: %v, and %d files", err, len(s.files))
		}
	})
}

// Exports are bounded, and end by themselves when nobody asks for more; what is not up to date is not exported.
func TestExports(t *testing.T) {
	in(t, false, "abc", func(w *world, at func(string) *Node) {
		w.replicate(mapRange, at("b"), at("c"))
		w.replicate(1, at("b"), at("c"))
		w.set(at("a"), "k", "v")
		begin := func(name string) error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*beat)
			defer cancel()
			n := at(name)
			a, err := n.ask(ctx, n.ID(), askExport, 1, packet.Bytes(nil, ""), nil)
			if err == nil {
				err = a.err()
			}
			return err
		}
		for range mostExports {
			if err := begin("b"); err != nil {
				t.Fatal(err)
			}
		}
		if err := begin("b"); err == nil || !strings.Contains(err.Error(), "under way") {
			t.Errorf("one export more: %v", err)
		}
		time.Sleep(idleExport + beat)
		if err := begin("b"); err != nil {
			t.Error(err)
		}
		w.setCut("b", "a", true)
		w.setCut("b", "c", true)
		if err := begin("b"); err == nil {
			t.Error("a node that is cut off exports what it has")
		}
	})
}

// A folder has whole files or none, and goes when nothing is left in it.
func TestFolder(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "backup")
	f := FolderOf(dir)
	if _, err := f.Get(ctx, "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := f.Put(ctx, "x", io.MultiReader(strings.NewReader("text"), failing{broken})); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder has stayed", err)
	}
	for _, name := range []string{"x", "y"} {
		if err := f.Put(ctx, name, strings.NewReader(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Put(ctx, "x", strings.NewReader("other")); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	r, err := f.Get(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); string(b) != "x" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	r.Close()
	for _, name := range []string{"x", "y"} {
		if err := f.Delete(ctx, name); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder has stayed", err)
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// Ranges may begin at any bytes, which are the same in the picture, and in a backup.
func TestRangesOfBytes(t *testing.T) {
	in(t, false, "ab", func(w *world, at func(string) *Node) {
		const key = "\xff\x00\xfe"
		for _, k := range []string{"", "a", key, key + "\xff"} {
			w.set(at("a"), k, "v")
		}
		w.do(at("b"), Step{Kind: Split, Key: key})
		time.Sleep(10 * beat)
		p, err := at("b").Picture(context.Background())
		if err != nil || len(p.Ranges) != 3 || p.Ranges[2].Lo != key || p.Ranges[1].Hi != key || p.Ranges[2].ID != 2 || p.Ranges[2].Keys != 2 || len(p.Ranges[2].Replicas) != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		s := &store{}
		b, err := at("b").Backup(context.Background(), s)
		if err != nil || len(b.Ranges) != 2 || string(b.Ranges[1].Lo) != key || b.Ranges[1].Keys != 2 {
			t.Fatalf("%+v, %v", b, err)
		}
		other := another(w)
		defer other.close()
		x := other.add("x").node.Load()
		if _, err := x.Restore(context.Background(), s); err != nil || !maps.Equal(all(x), all(at("a"))) {
			t.Errorf("%q, %v", all(x), err)
		}
	})
}
