// Sums of values in the leaves of a chunked tree.
#include "tally.h"
#include "vectorchunked.h"

// A tree of 64 bits has values of 32 in places of 64, with 0 in the rest.
#define OF_KIND(BITS, NAME, KIND) \
	VECTORS sumChunked##BITS##NAME(Version v, Units units, Parts to) { sum<KIND>(Chunks<u##BITS>{v}, units, to); }

OF_KIND(32, I32, INT32)
OF_KIND(32, U32, UINT32)
OF_KIND(32, F32, FLOAT32)
OF_KIND(64, I32, INT32)
OF_KIND(64, U32, UINT32)
OF_KIND(64, F32, FLOAT32)
OF_KIND(64, I64, INT64)
OF_KIND(64, U64, UINT64)
OF_KIND(64, F64, FLOAT64)
