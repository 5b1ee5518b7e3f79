// Sums of values in a column, and in leaves of pairs.
#include "tally.h"
#include "vectorflat.h"

#define OF_KIND(NAME, KIND, V) \
	VECTORS sumColumn##NAME(const V *column, Units units, Parts to) { sum<KIND>(Column<V>{column}, units, to); } \
	VECTORS sumPairs##NAME(const u8 *leaves, Units units, Parts to) { sum<KIND>(Pairs<V>{leaves}, units, to); }

FLAT_KINDS(OF_KIND)
