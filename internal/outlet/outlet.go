// Package outlet is where commands write their results.
package outlet

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Outlet is where a command writes its result. It remembers a failure: text for
// people is printed line by line, and a line that is lost must not go unnoticed.
type Outlet struct {
	W   io.Writer
	Err error // of the first write that failed
}

func (o *Outlet) Write(b []byte) (n int, err error) {
	if o.Err != nil {
		return 0, o.Err
	}
	n, err = o.W.Write(b)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		o.Err = fmt.Errorf("cannot write the output: %w; is its place full, or gone?", err)
	}
	return n, o.Err
}
