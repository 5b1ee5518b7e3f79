package ptx

import "github.com/pando-index/pando/internal/device"

// Several launches at once. A stream's kernel that has begun takes turns with
// those of other streams, and with their copies; the seed decides. One stream's
// work knows of another's by events and by the host waiting, as in CUDA.

// start is a launch in a queue.
type start struct {
	k      *kernel
	g      device.Grid
	params []byte
}

// dated is knowledge of a certain age of the model; older knowledge is known to
// all.
type dated struct {
	*knowledge
	age uint64
}

func (d *model) date(k knowledge) dated { return dated{k.snapshot(), d.age} }

// include adds what is still news.
func (d *model) include(k *knowledge, from dated) {
	if from.age == d.age {
		k.join(from.knowledge)
	}
}

// side returns what a stream knows in this age of the model.
func (s *stream) side() *knowledge {
	if d := s.dev.machine.model; s.known.age != d.age || s.known.knowledge == nil {
		s.known = dated{new(knowledge), d.age}
	}
	return s.known.knowledge
}

// flights returns the streams whose kernels have begun.
func (d *Device) flights() []*stream {
	var list []*stream
	for _, s := range d.streams {
		if s.flight != nil {
			list = append(list, s)
		}
	}
	return list
}

// takeOff begins a launch.
func (s *stream) takeOff(l *start) {
	d := s.dev
	if len(d.flights()) == 0 {
		d.machine.model.forget()
		d.known = knowledge{}
	}
	m := &machine{heap: d.machine.heap, maxSteps: d.machine.maxSteps, model: d.machine.model, launches: d.machine.launches}
	d.machine.launches++
	m.given = s.side().snapshot()
	m.begin(l.k, l.g, l.params, d.rng.next())
	m.admit()
	s.flight = m
}

// forgetPlaces makes instructions look for their memory again: some of it may be
// gone.
func (m *machine) forgetPlaces() {
	for i := range m.near {
		m.near[i] = nowhere
	}
}

// land ends a launch.
func (s *stream) land() {
	d, m := s.dev, s.flight
	s.err = m.end()
	d.machine.total += m.total
	if d.failed == nil {
		d.failed = s.err
	}
	s.side().join(&m.final)
	s.flight = nil
}

// fly gives a launch a few turns. It returns false if all its threads wait for
// memory to change.
func (s *stream) fly() bool {
	for range 1 + s.dev.rng.below(16) {
		switch s.flight.turn() {
		case finished:
			s.land()
			return true
		case waits:
			return false
		}
	}
	return true
}

// stepBoth is step if launches may run at once: a launch that has begun takes a
// few turns, or the next task of some stream is taken.
func (d *Device) stepBoth() bool {
	can, flying := d.startable(), d.flights()
	if n := d.rng.below(max(1, len(can)+len(flying))); n < len(can) {
		d.take(can[n])
		return true
	}
	if len(flying) == 0 {
		return false
	}
	first := d.rng.below(len(flying))
	for i := range flying {
		if flying[(first+i)%len(flying)].fly() {
			return true
		}
	}
	if len(can) > 0 {
		d.take(can[d.rng.below(len(can))])
		return true
	}
	flying[first].flight.deadlock()
	flying[first].land()
	return true
}

// hostWrites makes bytes that the host, or a copy, has written known to the
// launches that run: as a write by a thread of its own, which the stream knows.
func (s *stream) hostWrites(p device.Ptr, n int) {
	d := s.dev.machine.model
	if d == nil || len(s.dev.flights()) == 0 {
		return
	}
	var o *observer
	for addr := uint64(p) &^ 3; addr < uint64(p)+uint64(n); addr += 4 {
		w := d.words[wordKey{0, addr}]
		if w == nil {
			continue
		}
		if o == nil {
			o = d.observer(s.side())
		}
		x := &write{access: access{by: o, in: new(inst), stamp: o.clock[o.id], size: 4, mask: 15, write: true}}
		for i, b := range w.back() {
			x.bits |= uint32(b) << (8 * i)
		}
		w.insert(len(w.writes)-1, x)
		w.wrote = d.steps + 1
		s.side().join(&o.knowledge)
	}
	d.version++
	d.changed = d.steps
	d.wakeAll()
}
