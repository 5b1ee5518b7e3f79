package ptx

// modes are the checks that are off by default. Each of them runs launches on
// the model of PTX's memory (model.go) instead of on plain bytes, which is 3 to
// 10 times slower (BenchmarkLatches).
type modes struct {
	weak   bool // reads may be old, loads late, wide accesses torn
	strict bool // races by the letter of PTX
	both   bool // launches of several streams at once
	freeze bool // schedules that stop a thread that won an atomic
	pct    int  // changes of priority of a PCT schedule, 0 for none
}

// modelled reports whether any of the modes is on.
func (o modes) modelled() bool {
	return o.weak || o.strict || o.both || o.freeze || o.pct > 0
}

// Weak turns weak memory on: a read returns any write that PTX allows it to
// return, chosen by the seed, not only the latest. See the package
// documentation.
func Weak(on bool) Option {
	return func(d *Device) { d.modes.weak = on }
}

// Strict reports races by the letter of PTX: any two accesses to the same
// bytes, one of them a write, that neither are ordered nor are both strong, of
// the same size and within each other's scope. Without it, a plain read beside
// an atomic write is tolerated, and so is a scope that is too narrow.
func Strict(on bool) Option {
	return func(d *Device) { d.modes.strict = on }
}

// Concurrent lets kernels at the head of different streams run at the same
// time, interleaved by the seed.
func Concurrent(on bool) Option {
	return func(d *Device) { d.modes.both = on }
}

// PCT schedules threads by priority: the ready thread with the highest one
// runs, and at changes points, drawn by the seed, the running thread falls
// below all others. A bug that needs n ordering constraints is found with a
// probability that does not depend on luck alone (Burckhardt et al., ASPLOS
// 2010) if changes is at least n-1. 0 turns it off.
func PCT(changes int) Option {
	return func(d *Device) { d.modes.pct = changes }
}

// FreezeHolders stops a thread soon after it has changed a word by an atomic,
// for long: the new holder of a latch then holds it while all others run.
func FreezeHolders(on bool) Option {
	return func(d *Device) { d.modes.freeze = on }
}
