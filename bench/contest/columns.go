package contest

// Latest returns the rows of the contest just measured, one per subject.
func (s *Session) Latest(c *Contest) []*Row { return s.Rows[len(s.Rows)-len(c.Subjects):] }

// The extra columns of the GPU experiments.
const (
	colBestGiga = "best Gops/s"
	ColGiga     = "Gops/s"
)

var GigaColumns = []ExtraColumn{{colBestGiga, Number}, {ColGiga, Number}}

// SetGigas fills those columns.
func (s *Session) SetGigas() {
	for _, r := range s.Rows {
		if r.Best > 0 {
			r.Set(colBestGiga, 1/r.Best)
			r.Set(ColGiga, 1/r.Median)
		}
	}
}

// ColBatchMicros is the median time of one batch.
const ColBatchMicros = "µs a batch"

const ColBeyond = "% beyond pairs"

// ColUniform is the speed relative to uniform queries.
const ColUniform = "x uniform"

const ColSpeedup = "speed-up"

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

// ColPerMatch is the column of experiments whose operations return several
// entries each.
const ColPerMatch = "ns/match"
