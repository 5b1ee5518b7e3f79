package values

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
)

// keyBytes is the length of keys.
const keyBytes = 16

// entries is keys in random order, and a value for each that begins with its number. The values
// are all one slice of bytes but for that, so that the test itself takes little memory.
type entries struct {
	keys []string
	size int // of a value
	vals [][]byte
	buf  []byte
}

// setAtOnce is the entries that are set by one call of a store.
const setAtOnce = 4096

func newEntries(n, size int, seed uint64) *entries {
	e := &entries{keys: make([]string, n), size: size, vals: make([][]byte, min(n, setAtOnce)), buf: make([]byte, min(n, setAtOnce)*size)}
	for i := range e.vals {
		e.vals[i] = e.buf[i*size:][:size:size]
	}
	block := make([]byte, 0, n*keyBytes)
	rng := data.NewRand(seed, data.StreamTexts)
	for range n {
		block = fmt.Appendf(block, "%0*x", keyBytes, rng.Uint64())
	}
	text := string(block)
	for i := range e.keys {
		e.keys[i] = text[i*keyBytes:][:keyBytes]
	}
	return e
}

// valueOf is the first 8 bytes of the value of entry i.
func valueOf(i int) uint64 { return uint64(i) + 1 }

// each calls set with keys and values, some at a time: those of rows, in their order.
func (e *entries) each(rows func(i int) int, n int, set func(keys []string, vals [][]byte) error) error {
	most := len(e.vals)
	keys := make([]string, most)
	for lo := 0; lo < n; lo += most {
		part := min(most, n-lo)
		for i := range part {
			row := rows(lo + i)
			keys[i] = e.keys[row]
			binary.LittleEndian.PutUint64(e.vals[i], valueOf(row))
		}
		if err := set(keys[:part], e.vals[:part]); err != nil {
			return err
		}
	}
	return nil
}

// fill sets all entries.
func (e *entries) fill(st peers.ByteStore) error {
	return e.each(func(i int) int { return i }, len(e.keys), st.Set)
}

// questions is keys to be asked for, or set.
type questions struct {
	e    *entries
	rows []int
	keys []string
	got  []uint64
}

func newQuestions(e *entries, n int) *questions {
	return &questions{e, make([]int, n), make([]string, n), make([]uint64, n)}
}

func (q *questions) draw(rng *rand.Rand) {
	for i := range q.rows {
		q.rows[i] = rng.IntN(len(q.e.keys))
		q.keys[i] = q.e.keys[q.rows[i]]
	}
}

// check compares the answers to the first ops questions.
func (q *questions) check(ops, hits int) error {
	if hits != ops {
		return fmt.Errorf("%d of %d keys were found", hits, ops)
	}
	for i, r := range q.rows[:ops] {
		if q.got[i] != valueOf(r) {
			return fmt.Errorf("key %q has value %d; it should be %d", q.keys[i], q.got[i], valueOf(r))
		}
		q.got[i] = 0
	}
	return nil
}

// makers returns all stores, Pando's first.
func makers() []peers.ByteStoreMaker {
	return append([]peers.ByteStoreMaker{
		{Name: ours.NameTree, Make: func(int, int) (peers.ByteStore, error) { return ours.NewTreeBytes() }},
		{Name: ours.NameBoxes, Make: func(int, int) (peers.ByteStore, error) { return ours.NewBoxedBytes() }},
	}, peers.ByteStores()...)
}

// resident returns the resident memory of the process in bytes, after the Go heap has given
// back what it can; 0 where the system does not say.
func resident() int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}

// objects returns the objects on the Go heap.
func objects() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapObjects)
}

// roomFor reports whether a store of n entries fits into memory, twice: it is set anew.
func roomFor(s *contest.Session, name string, n, size int) bool {
	return s.Fits(name, n, 2*float64(keyBytes+size+150))
}
