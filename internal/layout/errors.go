package layout

import "fmt"

// SizeError is the error for a segment of the wrong size.
type SizeError struct{ Segment, Got, Want int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("segment %d has %d bytes, want %d", e.Segment, e.Got, e.Want)
}
