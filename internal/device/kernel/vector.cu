// Sums of values in a column, and in leaves of pairs.
#include "tally.h"
#include "vectorflat.h"

#define OF_KIND(NAME, KIND, V) \
	VECTORS sumColumn##NAME(const V *column, Units units, Parts to) { sum<KIND>(Column<V>{column}, units, to); } \
	VECTORS sumPairs##NAME(const u8 *leaves, Units units, Parts to) { sum<KIND>(Pairs<V>{leaves}, units, to); }

OF_KIND(I32, INT32, u32)
OF_KIND(U32, UINT32, u32)
OF_KIND(F32, FLOAT32, u32)
OF_KIND(I64, INT64, u64)
OF_KIND(U64, UINT64, u64)
OF_KIND(F64, FLOAT64, u64)
