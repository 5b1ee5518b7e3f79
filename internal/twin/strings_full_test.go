package twin

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/cuart/cuarttest"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/seed"
)

// The same holds for a batch of a twin, in one piece and in several.
func TestStringsSendOnlyKeysAndValues(t *testing.T) {
	for _, piece := range []int{10, 5000} {
		inner := ptx.New(ptx.RaceCheck(false))
		dev, cpu := &cuarttest.Scale{Device: inner}, radix.New(0)
		f, err := NewStrings(cpu, dev, StringsOptions{Workers: 2, ValBits: 64, Room: 64 << 20, Changes: 1})
		must(t, err)
		f.piece = piece
		const n, width = 5 * 10 * sendPieces / 4, 8
		keys, vals := make([]string, n), make([]uint64, n)
		for i := range keys {
			keys[i] = fmt.Sprintf("%0*d", width, i)
		}
		for _, more := range []string{"", "k"} { // all of one length, or not
			keys[n/2] += more
			dev.In.Store(0)
			must(t, f.Apply(&StringBatch{Keys: keys, Vals: arena.Bytes(vals), Kind: op.Set}))
			least := int64(n*(width+8) + len(more)*4*(n+1))
			if in := dev.In.Load(); in < least || in > least+int64(3*cuart.ToldBytes) {
				t.Errorf("pieces of %d: %d bytes travel, want %d", piece, in, least)
			}
			must(t, f.Check())
		}
		must(t, f.Close())
		cpu.Close()
	}
}

// crowdedHistory lets a twin live on a device with little room, which may fail
// unless it is sound. It reports whether its leaves are in host memory at the end.
func crowdedHistory(t *testing.T, dev *faulty.Device, first uint64, room int64, sound bool) (moved bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(first, 0))
	x := &following{t: t, cpu: radix.New(0), model: map[string]uint64{}}
	defer x.cpu.Close()
	var err error
	if x.f, err = NewStrings(x.cpu, dev, StringsOptions{Workers: 2, ValBits: 64, Room: room, HostRoom: 1 << 20, Notes: 5}); err != nil {
		return false
	}
	for range 9 {
		x.step(rng)
	}
	if err := x.f.Check(); err != nil && sound {
		t.Error(err)
	}
	down := x.f.Down()
	if down != nil && sound && !short(down) {
		t.Error(down)
	}
	moved = down == nil && x.f.tree.HostBytes() > 0
	x.f.Close()
	return moved
}

// A device that is full, and fails at any operation or is lost there, costs no answer.
// PANDO_LONG=1000 tries all of them.
func TestStringsOfFullDevice(t *testing.T) {
	first := seed.Of(t)
	var count *faulty.Device
	room, moved := int64(128<<10), false
	for !moved { // until leaves have to move
		if room -= room / 5; room < 4<<10 {
			t.Skip("either all has found room, or nodes have not")
		}
		count = faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), faulty.Plan{})
		moved = crowdedHistory(t, count, first, room, true)
	}
	all := count.Count(faulty.Any)
	step := seed.Stride(all, 4, 12)
	rng := rand.New(rand.NewPCG(first, 1))
	for at := 1 + rng.IntN(step); at <= all; at += step {
		dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(false)), faulty.Plan{At: at, Lose: rng.IntN(2) == 0})
		crowdedHistory(t, dev, first, room, false)
		if live := dev.Live(); live != 0 || t.Failed() {
			t.Fatalf("operation %d of %d fails: %d things are left on the device", at, all, live)
		}
	}
}
