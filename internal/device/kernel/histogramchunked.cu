// Histograms of values in the leaves of a chunked tree.
#include "bins.h"
#include "vectorchunked.h"

#define OF_KIND(BITS, NAME, KIND) \
	VECTORS binChunked##BITS##NAME(Version v, Units units, Histogram to) { countAll<KIND>(Chunks<u##BITS>{v}, units, to); }

CHUNKED_KINDS(OF_KIND)
