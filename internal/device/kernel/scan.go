package kernel

const (
	sumTile = 16 * blockThreads // numbers in a tile, as in scan.h
	sumHead = 16                // bytes before the reports: the ticket counter
)

// sumTiles returns the number of tiles: at least one, since something must write
// the sum of no numbers.
func sumTiles(n int) int { return max(1, (n+sumTile-1)/sumTile) }

// SumTemp returns the number of bytes of temporary memory that the sums of n
// numbers need.
func SumTemp(n int) int { return sumHead + 8*sumTiles(n) }
