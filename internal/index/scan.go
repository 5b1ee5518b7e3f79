package index

// Reach says which entries an iteration goes through.
type Reach uint8

const (
	ReachAll    Reach = iota
	ReachDown         // all, in reverse
	ReachRange        // from one key to another
	ReachPrefix       // those that begin with a string
	ReachScan         // as a Scan says
)

// Few is the number of entries that are read at once, and without memory from a pool, if
// values take none or are kept in the index.
const Few = 4

// Scan is the effect of all options of a scan together.
type Scan struct {
	Bounds  Bounds
	Limit   int
	Limited bool
	Reverse bool
}
