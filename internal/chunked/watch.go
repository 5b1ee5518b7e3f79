package chunked

// Step is a part of Apply, for measurements.
type Step int

// The steps of a batch, in their order. A batch that nobody asks the effects of
// has no StepEffects.
const (
	StepSort    Step = iota // operations in key order
	StepProbe               // answers, and the effect of each operation on its leaf
	StepEffects             // effects of the batch
	StepPlan                // memory needed, up to the time when the host knows it
	StepWrite               // leaves
	StepTable               // chunks, and the table above them
	Steps                   // their number
)

func (s Step) String() string {
	return [...]string{"sort", "probe", "effects", "plan", "write", "table"}[s]
}

// Watch makes Apply call f when all work of a step is queued in the tree's
// stream, so that f may record an event there; nil ends that. An error of f ends
// the batch as one of the device does.
func (t *Tree[C]) Watch(f func(Step) error) { t.watch = f }

func (t *Tree[C]) queued(s Step) error {
	if t.watch == nil {
		return nil
	}
	return t.watch(s)
}

// SetFlat changes what Options.Flat has set, from the next batch on. Here 0 is
// for every batch that there is room for: it is merged with everything.
func (t *Tree[C]) SetFlat(flat int) { t.flat = flat }
