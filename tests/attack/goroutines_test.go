package attack

import (
	"fmt"
	"runtime/debug"
)

// panicked is a panic on its way to another goroutine.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprint("panic: ", p.value) }

// passedOn calls do on a goroutine that was started for it, and returns what it
// panics with as an error, for firstOf.
func passedOn(do func() error) (err error) {
	debug.SetPanicOnFault(true)
	defer func() {
		if v := recover(); v != nil {
			err = panicked{v}
		}
	}()
	return do()
}

// firstOf waits for n goroutines and returns the worst error among theirs: a
// wrong answer before a panic, and that of an index that was closed last. A panic
// panics here, too.
func firstOf(results chan error, n int) error {
	var worst error
	for range n {
		if err := <-results; weight(err) > weight(worst) {
			worst = err
		}
	}
	if p, ok := worst.(panicked); ok {
		panic(p.value)
	}
	return worst
}

// weight orders errors.
func weight(err error) int {
	p, ok := err.(panicked)
	switch {
	case err == nil:
		return 0
	case !ok:
		return 3
	case !closedText(fmt.Sprint(p.value)):
		return 2
	}
	return 1
}
