// Package blocked is the index tree of the FAST paper: its nodes lie together as
// the hardware fetches them. (The paper's compressed integers are package
// packed, its strings package words.)
//
// It is a binary search tree over the leaves of package implicit, its nodes put
// together three times over (section 4.2, figure 1): K binary levels are what
// one vector comparison takes, L levels fill a cache line, P levels a page.
//
//	segment 0: rows of pages, the root's row first; all pages of a row are alike
//	  ┌──────────┬──────────┬──────────┬─────┬──────────┬──────────┬──
//	  │  page 0  │  page 0  │  page 1  │  …  │  page 0  │  page 1  │ …
//	  └──────────┴──────────┴──────────┴─────┴──────────┴──────────┴──
//	   row 0      row 1, pages 0 to F^k-1     row 2
//
//	  a page of k = P/L levels of lines, one level after the other, F = 2^L
//	  ┌──────┬──────┬──────┬─────┬────────┬──────┬─────┬──────────┬──
//	  │ line │ line │ line │  …  │ line   │ line │  …  │ line     │ …
//	  │  0   │  0   │  1   │     │  F-1   │  0   │     │ F·F-1    │
//	  └──────┴──────┴──────┴─────┴────────┴──────┴─────┴──────────┴──
//	   level 0 level 1                     level 2: child c of line j is F·j+c
//
//	  a line of 2^L-1 separators, 64 bytes: L is 4 (32-bit keys) or 3 (64-bit)
//	  ┌──┬──┬──┬──┬──┬──┬──┬───┐   separator c is the greatest key under
//	  │s0│s1│s2│s3│s4│s5│s6│max│   child c; the last child has none. Places
//	  └──┴──┴──┴──┴──┴──┴──┴───┘   without a child hold the maximum
//
//	segments 1 and 2: leaves and column of values, as package implicit has them
//
// The child by path c of page p is page F^k·p + c of the next row. The top row
// has the levels that are left over, so that the pages of all others are full;
// a row has only those pages that have a leaf under them. Lines of
// a page without a leaf under them stay as the system gave them: zeros that
// nobody has touched, which take addresses rather than memory.
//
// Nodes are told apart by their number on their level of lines: node x has the
// children F·x + c. Where its line is takes a shift and a multiplication
// (simd.Lines). As in package implicit, to count the separators below a key is
// to choose the child with its lower bound: so equal keys may cross any
// border, no key value is reserved, and N need not be a power of two.
//
// K is 4 or 3 as L is, since today's vectors take a whole line. With a smaller
// K the keys of a line lie in blocks of 2^K-1, as the paper has them for
// vectors of its day (K = 2): for experiments, which compare the ways to search
// such lines (package papers/fast). To the count it makes no difference.
package blocked
