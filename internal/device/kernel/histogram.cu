// Histograms of values in a column, and in leaves of pairs.
#include "bins.h"
#include "vectorflat.h"

#define OF_KIND(NAME, KIND, V) \
	VECTORS binColumn##NAME(const V *column, Units units, Histogram to) { countAll<KIND>(Column<V>{column}, units, to); } \
	VECTORS binPairs##NAME(const u8 *leaves, Units units, Histogram to) { countAll<KIND>(Pairs<V>{leaves}, units, to); }

FLAT_KINDS(OF_KIND)
