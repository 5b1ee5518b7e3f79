package faulty_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
)

// addPTX adds v to one word per thread.
const addPTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 v)
{
.reg .b32 %r<4>; .reg .b64 %d<4>;
ld.param.u64 %d0, [p];
ld.param.u32 %r0, [v];
mov.u32 %r1, %tid.x;
mul.wide.u32 %d1, %r1, 4;
add.u64 %d2, %d0, %d1;
ld.global.u32 %r2, [%d2];
add.u32 %r2, %r2, %r0;
st.global.u32 [%d2], %r2;
ret;
}
`

const words = 40

// job does some of everything on a device, and frees all it allocated,
// whatever happens. The first error ends it.
type job struct {
	d      device.Device
	undo   []func() error
	undone []error // errors of freeing
	late   []error // errors of work that was waited for only before freeing
}

func (j *job) later(free func() error) { j.undo = append(j.undo, free) }

func (j *job) cleanUp() {
	for i := len(j.undo) - 1; i >= 0; i-- {
		j.undone = append(j.undone, j.undo[i]())
	}
}

// taken returns what a device returned, and records how to free it.
func taken[T any](j *job, free func(T) error) func(T, error) (T, error) {
	return func(v T, err error) (T, error) {
		if err == nil {
			j.later(func() error { return free(v) })
		}
		return v, err
	}
}

// run runs the whole job and returns the first error of each of its parts.
func (j *job) run() (err error) {
	defer func() {
		j.cleanUp()
		err = errors.Join(append(j.late, err)...)
	}()
	return j.add()
}

// add adds 5 to some words, copies them in a second stream, and returns an
// error unless they come back right.
func (j *job) add() error {
	d := j.d
	if _, err := d.FreeBytes(); err != nil {
		return err
	}
	m, err := taken(j, device.Module.Unload)(d.Load(addPTX))
	if err != nil {
		return err
	}
	add, err := m.Kernel("add")
	if err != nil {
		return err
	}
	p, err1 := j.grown(4 * words)
	q, err2 := taken(j, d.Free)(d.Alloc(4 * words))
	in, err3 := taken(j, d.HostFree)(d.HostAlloc(4 * words))
	out := make([]byte, 4*words)
	_, err4 := taken(j, d.Unregister)(out, d.Register(out))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	for i := range words {
		binary.LittleEndian.PutUint32(in[4*i:], uint32(i))
	}
	if err := j.flow(add, p, q, in, out); err != nil {
		return err
	}
	for i := range words {
		if got := binary.LittleEndian.Uint32(out[4*i:]); got != uint32(i)+5 {
			return fmt.Errorf("word %d is %d", i, got)
		}
	}
	return nil
}

// grown returns memory of a range that has grown twice.
func (j *job) grown(bytes int64) (device.Ptr, error) {
	r, err := taken(j, device.Range.Free)(j.d.Reserve(1 << 30))
	if err != nil {
		return 0, err
	}
	if err := errors.Join(r.Grow(bytes/2), r.Grow(bytes)); err != nil {
		return 0, err
	}
	if r.Len() < bytes {
		return 0, fmt.Errorf("%d bytes are there", r.Len())
	}
	h, err := taken(j, device.HostRange.Free)(j.d.ReserveHost(1 << 30))
	if err != nil {
		return 0, err
	}
	if err := h.Grow(bytes); err != nil || int64(len(h.Bytes())) < bytes {
		return 0, errors.Join(err, errors.New("not all bytes are there"))
	}
	return r.Base(), nil
}

// flow is the part of a job that uses streams. It waits for them before it
// returns, as the memory they use is freed then.
func (j *job) flow(add device.Kernel, p, q device.Ptr, in, out []byte) error {
	wait := func(s device.Stream) error {
		j.late = append(j.late, s.Synchronize())
		return s.Close()
	}
	first, err1 := taken(j, wait)(j.d.NewStream())
	second, err2 := taken(j, wait)(j.d.NewStream())
	begin, err3 := taken(j, device.Event.Close)(j.d.NewEvent())
	end, err4 := taken(j, device.Event.Close)(j.d.NewEvent())
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	chain, err := taken(j, device.Graph.Close)(j.d.NewGraph(func(s device.Stream) error {
		for _, v := range []uint32{1, 1} {
			if err := s.Launch(add, device.Grid{Blocks: 1, Threads: words}, params(p, v)); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return first.Record(begin) },
		func() error { return first.Fill(q, 7, 4*words) },
		func() error { return first.CopyIn(p, in) },
		func() error { return first.Start(chain) },
		func() error { return first.Launch(add, device.Grid{Blocks: 1, Threads: words}, params(p, 3)) },
		func() error { return first.Record(end) },
		func() error { return second.Wait(end) },
		func() error { return second.CopyDevice(q, p, 4*words) },
		func() error { return second.CopyOut(out, q) },
		end.Synchronize,
		func() error { _, err := end.Since(begin); return err },
		second.Synchronize,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func params(p device.Ptr, v uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(p)), v)
}

func mustNot(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got returns what a device returned without an error.
func got[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		mustNot(t, err)
		return v
	}
}

// each runs test with every plan whose fault a job meets.
func each(t *testing.T, lose bool, test func(t *testing.T, p faulty.Plan)) {
	t.Helper()
	d := faulty.New(ptx.New(), faulty.Plan{Lose: lose})
	mustNot(t, (&job{d: d}).run())
	for _, op := range append(faulty.Ops(), faulty.Any) {
		n := d.Count(op)
		if n == 0 {
			t.Errorf("a job has no %v", op)
		}
		for at := 1; at <= n; at++ {
			test(t, faulty.Plan{Op: op, At: at, Lose: lose})
		}
	}
}

// wanted is the expected error of each operation.
var wanted = map[faulty.Op]error{
	faulty.Alloc: device.ErrOutOfMemory, faulty.HostAlloc: device.ErrOutOfMemory, faulty.Register: device.ErrOutOfMemory,
	faulty.NewStream: device.ErrOutOfMemory, faulty.NewEvent: device.ErrOutOfMemory,
	faulty.Load: device.ErrBadKernel, faulty.Kernel: device.ErrBadKernel,
	faulty.CopyIn: device.ErrLaunchFailed, faulty.CopyOut: device.ErrLaunchFailed, faulty.CopyDevice: device.ErrLaunchFailed,
	faulty.Fill: device.ErrLaunchFailed, faulty.Launch: device.ErrLaunchFailed, faulty.Record: device.ErrLaunchFailed,
	faulty.Wait: device.ErrLaunchFailed, faulty.Synchronize: device.ErrLaunchFailed, faulty.FreeBytes: device.ErrLaunchFailed,
	faulty.Reserve: device.ErrOutOfMemory, faulty.Grow: device.ErrOutOfMemory, faulty.NewGraph: device.ErrOutOfMemory,
	faulty.Start: device.ErrLaunchFailed, faulty.ReserveHost: device.ErrOutOfMemory,
}

// Each operation of a job fails once, with its kind of error; the job frees
// everything, and the device works as if nothing had happened.
func TestEveryOperationFails(t *testing.T) {
	each(t, false, func(t *testing.T, p faulty.Plan) {
		below := ptx.New()
		d := faulty.New(below, p)
		j := &job{d: d}
		err := j.run()
		if kind := wanted[p.Op]; err == nil || kind != nil && !errors.Is(err, kind) {
			t.Errorf("%v %d: %v, want %v", p.Op, p.At, err, kind)
		}
		if err := errors.Join(j.undone...); err != nil {
			t.Errorf("%v %d: giving back: %v", p.Op, p.At, err)
		}
		if d.Live() != 0 || d.Count(p.Op) < p.At {
			t.Errorf("%v %d: %d are left, %d were counted", p.Op, p.At, d.Live(), d.Count(p.Op))
		}
		if err := (&job{d: d}).run(); err != nil {
			t.Errorf("%v %d: the next job: %v", p.Op, p.At, err)
		}
		if free, err := below.FreeBytes(); err != nil || free != below.Info().TotalBytes {
			t.Errorf("%v %d: %d bytes free below, %v", p.Op, p.At, free, err)
		}
		mustNot(t, d.Close())
	})
}

// The device is lost at each operation of a job: everything after that reports
// it, and what is freed is freed in the wrapped device.
func TestLostAtEveryOperation(t *testing.T) {
	each(t, true, func(t *testing.T, p faulty.Plan) {
		below := ptx.New()
		d := faulty.New(below, p)
		j := &job{d: d}
		if err := j.run(); !errors.Is(err, device.ErrLost) {
			t.Errorf("%v %d: %v", p.Op, p.At, err)
		}
		lost := false // the fault may come while the job frees
		for _, err := range j.undone {
			if lost = lost || err != nil; lost && !errors.Is(err, device.ErrLost) {
				t.Errorf("%v %d: giving back: %v", p.Op, p.At, err)
			}
		}
		if free, err := below.FreeBytes(); d.Live() != 0 || err != nil || free != below.Info().TotalBytes {
			t.Errorf("%v %d: %d are left, %d bytes free below, %v", p.Op, p.At, d.Live(), free, err)
		}
		if err := d.Close(); !errors.Is(err, device.ErrLost) {
			t.Errorf("%v %d: Close: %v", p.Op, p.At, err)
		}
		if _, err := below.FreeBytes(); err == nil {
			t.Errorf("%v %d: not closed below", p.Op, p.At)
		}
	})
}

// After a loss no operation reaches the wrapped device, and none succeeds.
func TestNothingWorksAfterLoss(t *testing.T) {
	d := faulty.New(ptx.New(), faulty.Plan{Op: faulty.FreeBytes, At: 1, Lose: true})
	m := got[device.Module](t)(d.Load(addPTX))
	k := got[device.Kernel](t)(m.Kernel("add"))
	s := got[device.Stream](t)(d.NewStream())
	e := got[device.Event](t)(d.NewEvent())
	p := got[device.Ptr](t)(d.Alloc(64))
	r := got[device.Range](t)(d.Reserve(1 << 20))
	g := got[device.Graph](t)(d.NewGraph(func(s device.Stream) error { return s.Fill(p, 1, 64) }))
	host := make([]byte, 64)
	mustNot(t, s.Record(e))
	mustNot(t, s.Synchronize())
	ops := map[faulty.Op][]func() error{
		faulty.FreeBytes:   {func() error { _, err := d.FreeBytes(); return err }},
		faulty.Alloc:       {func() error { _, err := d.Alloc(1); return err }},
		faulty.HostAlloc:   {func() error { _, err := d.HostAlloc(1); return err }},
		faulty.Register:    {func() error { return d.Register(host) }},
		faulty.Load:        {func() error { _, err := d.Load(addPTX); return err }},
		faulty.Kernel:      {func() error { _, err := m.Kernel("add"); return err }},
		faulty.NewStream:   {func() error { _, err := d.NewStream(); return err }},
		faulty.NewEvent:    {func() error { _, err := d.NewEvent(); return err }},
		faulty.CopyIn:      {func() error { return s.CopyIn(p, host) }},
		faulty.CopyOut:     {func() error { return s.CopyOut(host, p) }},
		faulty.CopyDevice:  {func() error { return s.CopyDevice(p, p+32, 8) }},
		faulty.Fill:        {func() error { return s.Fill(p, 1, 64) }},
		faulty.Launch:      {func() error { return s.Launch(k, device.Grid{Blocks: 1, Threads: 1}, params(p, 1)) }},
		faulty.Record:      {func() error { return s.Record(e) }},
		faulty.Wait:        {func() error { return s.Wait(e) }},
		faulty.Synchronize: {s.Synchronize, e.Synchronize, func() error { _, err := e.Since(e); return err }},
		faulty.Reserve:     {func() error { _, err := d.Reserve(1); return err }},
		faulty.Grow:        {func() error { return r.Grow(1) }},
		faulty.NewGraph:    {func() error { _, err := d.NewGraph(func(device.Stream) error { return nil }); return err }},
		faulty.Start:       {func() error { return s.Start(g) }},
		faulty.ReserveHost: {func() error { _, err := d.ReserveHost(1); return err }},
	}
	for _, op := range append([]faulty.Op{faulty.FreeBytes}, faulty.Ops()...) {
		if len(ops[op]) == 0 {
			t.Errorf("%v is not tried", op)
		}
		for _, do := range ops[op] {
			before := d.Count(op)
			if err := do(); !errors.Is(err, device.ErrLost) {
				t.Errorf("%v: %v", op, err)
			}
			if d.Count(op) != before+1 {
				t.Errorf("%v was counted %d times", op, d.Count(op)-before)
			}
		}
	}
	if d.Live() != 6 || r.Len() != 0 {
		t.Errorf("%d live, %d bytes", d.Live(), r.Len())
	}
	if d.Close(); d.Live() != 0 {
		t.Errorf("%d live after Close", d.Live())
	}
}

// The plan's own error is returned once; with Lose, ErrLost follows it.
func TestErrorOfThePlan(t *testing.T) {
	own := errors.New("the cable")
	for _, lose := range []bool{false, true} {
		d := faulty.New(ptx.New(), faulty.Plan{Op: faulty.Alloc, At: 2, Err: own, Lose: lose})
		_, first := d.Alloc(8)
		_, second := d.Alloc(8)
		_, third := d.Alloc(8)
		if first != nil || !errors.Is(second, own) || errors.Is(second, device.ErrLost) || errors.Is(third, device.ErrLost) != lose {
			t.Errorf("lose %v: %v; %v; %v", lose, first, second, third)
		}
	}
}

// Errors of the wrapped device are passed on and leave nothing to free, and a
// free that it refuses does not count as one.
func TestErrorsFromBelow(t *testing.T) {
	d := faulty.New(ptx.New(ptx.Memory(1<<10)), faulty.Plan{})
	if _, err := d.Alloc(1 << 20); !errors.Is(err, device.ErrOutOfMemory) {
		t.Error(err)
	}
	if _, err := d.Load("no kernel"); !errors.Is(err, device.ErrBadKernel) {
		t.Error(err)
	}
	if _, err := d.HostAlloc(0); err == nil {
		t.Error("no bytes were allocated")
	}
	if d.Live() != 0 {
		t.Errorf("%d live", d.Live())
	}
	p, err := d.Alloc(8)
	mustNot(t, err)
	if err := d.Free(p + 4); err == nil || d.Live() != 1 {
		t.Errorf("free of a wrong address: %v, %d live", err, d.Live())
	}
	host, err := d.HostAlloc(8)
	mustNot(t, err)
	if err := d.HostFree(host[:4]); err == nil || d.Live() != 2 {
		t.Errorf("free of a part: %v, %d live", err, d.Live())
	}
	s, err := d.NewStream()
	mustNot(t, err)
	other, err := ptx.New().NewEvent()
	mustNot(t, err)
	if s.Record(other) == nil || s.Wait(other) == nil {
		t.Error("an event of another device was taken")
	}
	mustNot(t, d.Close())
	if d.Live() != 0 {
		t.Errorf("%d live after Close", d.Live())
	}
}
