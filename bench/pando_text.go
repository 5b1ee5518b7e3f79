package main

import "github.com/pando-index/pando"

const namePandoSorted = "Pando apart"

// frozenText is Pando with strings as keys.
type frozenText struct {
	label string
	ix    *pando.Frozen[string, uint64]
}

func makePandoText(label string, opts ...pando.Option) textMaker {
	return textMaker{name: label, peak: func(key float64) float64 { return 2 * (key + 16) }, build: func(t *texts) (textSystem, error) {
		f, err := freezeTexts(t, label, 1, opts...)
		if err != nil {
			return nil, err
		}
		return f, nil
	}}
}

func freezeTexts(t *texts, label string, threads int, opts ...pando.Option) (*frozenText, error) {
	ix, err := pando.Freeze(t.keys, t.vals, append([]pando.Option{pando.On(pando.CPU), pando.Workers(threads)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &frozenText{label, ix}, nil
}

// pandoTexts returns Pando with each engine for strings, the default first.
func pandoTexts() []textMaker {
	return []textMaker{
		makePandoText(namePando),
		makePandoText(namePandoSorted, pando.Layout(pando.Apart)),
	}
}

func (f *frozenText) Name() string { return f.label }
func (f *frozenText) Close()       { f.ix.Close() }

func (f *frozenText) BytesPerEntry() float64 { return perEntry(f.ix.Stats()) }

func (f *frozenText) Get(q []string, vals []uint64, found []bool) int {
	return f.ix.GetBatch(q, vals, found)
}

// GetBytes is Get for strings that lie one behind the other.
func (f *frozenText) GetBytes(data []byte, offsets []int32, vals []uint64, found []bool) int {
	return f.ix.GetBatchBytes(data, offsets, vals, found)
}

// frozenTexts is Pando over strings without values.
type frozenTexts struct {
	ix *pando.Frozen[string, struct{}]
}

// openTextSet builds it for one thread.
func openTextSet(keys []string) (frozenTexts, error) {
	ix, err := pando.Freeze(keys, make([]struct{}, len(keys)), pando.On(pando.CPU), pando.Workers(1))
	return frozenTexts{ix}, err
}

func (f frozenTexts) Close()                       { f.ix.Close() }
func (f frozenTexts) Rank(q []string, ranks []int) { f.ix.RankBatch(q, ranks) }
func (f frozenTexts) BytesPerEntry() float64       { return perEntry(f.ix.Stats()) }
