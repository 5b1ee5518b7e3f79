// Histograms of values in a column, and in leaves of pairs.
#include "bins.h"
#include "vectorflat.h"

#define OF_KIND(NAME, KIND, V) \
	VECTORS binColumn##NAME(const V *column, Units units, Histogram to) { countAll<KIND>(Column<V>{column}, units, to); } \
	VECTORS binPairs##NAME(const u8 *leaves, Units units, Histogram to) { countAll<KIND>(Pairs<V>{leaves}, units, to); }

OF_KIND(I32, INT32, u32)
OF_KIND(U32, UINT32, u32)
OF_KIND(F32, FLOAT32, u32)
OF_KIND(I64, INT64, u64)
OF_KIND(U64, UINT64, u64)
OF_KIND(F64, FLOAT64, u64)
