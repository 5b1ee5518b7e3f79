package log

import "fmt"

// GoesOn is what is wrong with a segment that ends before the next is used.
const GoesOn = "the log ends here, and goes on in the next segment"

// Connect compares the segments of a log with each other: each but the last that was written to
// ends in a seal, and the next goes on with the next number. Behind the last there is
// nothing but headers and zeros. It is given their numbers, which follow each other, what Read
// has returned of each, and the number of the first operation. It returns
// which of them is the last that was written to, and where a Writer goes on.
func Connect(segments []uint64, scans []Scan, errs []error, next uint64) (last int, at Start, err error) {
	bad := func(i int, offset int64, why string) (int, Start, error) {
		return last, at, &Bad{Name: Name(segments[0] + uint64(i)), Offset: offset, Why: why}
	}
	for i, s := range scans {
		if errs[i] != nil {
			return last, at, errs[i]
		}
		if s.Frames > 0 && s.First != next {
			return bad(i, s.End, fmt.Sprintf("it begins with operation %d, and %d was to come", s.First, next))
		}
		if s.Frames > 0 {
			next = s.Next
		}
		if last = i; s.Sealed {
			if i+1 == len(scans) {
				return bad(i+1, 0, "this part of the log is missing")
			}
			continue
		}
		for j := i + 1; j < len(scans); j++ {
			if errs[j] != nil {
				return last, at, errs[j]
			}
			if scans[j].Frames > 0 || scans[j].Torn > 0 {
				return bad(i, s.End, GoesOn)
			}
		}
		break
	}
	at = scans[last].start(segments[last], next)
	if last > 0 && scans[last].Frames == 0 {
		before := scans[last-1].start(segments[last-1], next)
		at.Before = &before
	}
	return last, at, nil
}

// start returns where a segment ends.
func (s *Scan) start(segment, next uint64) Start {
	return Start{Segment: segment, Offset: s.End, Next: next, Durable: s.Durable, Torn: s.Torn}
}
