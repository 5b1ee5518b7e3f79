// Sums of values in the leaves of a chunked tree.
#include "tally.h"
#include "vectorchunked.h"

#define OF_KIND(BITS, NAME, KIND) \
	VECTORS sumChunked##BITS##NAME(Version v, Units units, Parts to) { sum<KIND>(Chunks<u##BITS>{v}, units, to); }

CHUNKED_KINDS(OF_KIND)
