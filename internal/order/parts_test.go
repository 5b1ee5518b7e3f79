package order

// codec is the functions of this package for one type of keys.
type codec[K Key, C Code] struct{ t Type }

func newCodec[K Key, C Code]() codec[K, C] {
	t := TypeOf[K]()
	mustHave[C](t)
	return codec[K, C]{t}
}

func (c codec[K, C]) Encode(k K) C                      { return C(Encode(c.t, k).Code) }
func (c codec[K, C]) Decode(code C) K                   { return Decode[K](c.t, Probe{Code: uint64(code)}) }
func (c codec[K, C]) EncodeSlice(dst []C, keys []K) []C { return Codes(KeysOf(keys), dst) }
func (c codec[K, C]) DecodeSlice(dst []K, codes []C)    { SetKeys(KeysOf(dst), codes) }
func (c codec[K, C]) Identity() bool                    { return c.t.identity() }

func sortedKeys[K Key, C Code](_ codec[K, C], keys []K, workers int) bool {
	return SortedKeys[C](KeysOf(keys), workers)
}

func width[K Key]() int { return TypeOf[K]().Bits() }
