package contest

// Extra columns that several experiments have.
const (
	ColPerMatch    = "ns/match"       // of operations that return several entries each
	ColBeyond      = "% beyond pairs" // memory beyond that of keys and values
	ColSpeedup     = "speed-up"       // relative to the first number of threads
	ColUniform     = "x uniform"      // speed relative to uniform queries
	ColBatchMicros = "µs a batch"     // the median time of one batch
	ColGiga        = "Gops/s"

	colBestGiga = "best Gops/s"
)

// GigaColumns are those of GPU experiments; SetGigas fills them.
var GigaColumns = []ExtraColumn{{colBestGiga, Number}, {ColGiga, Number}}

// SetGigas fills GigaColumns.
func (s *Session) SetGigas() {
	for _, r := range s.Rows {
		if r.Best > 0 {
			r.Set(colBestGiga, 1/r.Best)
			r.Set(ColGiga, 1/r.Median)
		}
	}
}

// CompareTo fills a column with the speed of each row relative to its base:
// the row for which base returns true and that same considers equal.
func (s *Session) CompareTo(column string, base func(*Row) bool, same func(a, b *Row) bool) {
	for _, r := range s.Rows {
		for _, b := range s.Rows {
			if base(b) && same(r, b) {
				r.Set(column, b.Median/r.Median)
				break
			}
		}
	}
}

// Latest returns the rows of the contest just measured, one per subject.
func (s *Session) Latest(c *Contest) []*Row { return s.Rows[len(s.Rows)-len(c.Subjects):] }
