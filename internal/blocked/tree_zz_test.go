package blocked

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/simd"
)

func TestZZ(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	t.Run("32", zz[uint32])
	if os.Getenv("ZZ") == "2" {
		t.Run("64", zz[uint64])
	}
}

func zz[C simd.Code](t *testing.T) {
	n := 64 << 20
	if s := os.Getenv("ZN"); s != "" {
		fmt.Sscan(s, &n)
	}
	keys := make([]C, n)
	step := ^C(0) / C(n)
	for i := range keys {
		keys[i] = C(i)*step + C(rand.Uint64())%step
	}
	if !slices.IsSorted(keys) {
		t.Fatal()
	}
	asked := make([]C, 1<<20)
	for i := range asked {
		asked[i] = C(rand.Uint64())
	}
	ranks := make([]int, len(asked))
	cfg := implicit.Config{Pages: arena.HugeAll, Workers: 2}
	if os.Getenv("ZD") != "" {
		fmt.Sscan(os.Getenv("ZD"), &cfg.Distance)
	}
	src := implicit.Source[C]{Len: n, Codes: keys}
	maxK := 4
	if os.Getenv("ZP") != "" {
		maxK = 3
	}
	s := time.Now()
	im, err := implicit.Build(src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("implicit build", time.Since(s))
	names := []string{"implicit"}
	ways := []func([]C, []int){im.Rank}
	l := lineLevels[C]()
	for k := 1; k <= maxK; k++ {
		s := time.Now()
		tr, err := Build(src, Config{cfg, Geometry{P: k * l}})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("blocked build", k, time.Since(s), tr.Stats().InnerBytes>>10, "KiB inner", len(tr.rows), "rows")
		names, ways = append(names, fmt.Sprint("blocked ", k)), append(ways, tr.Rank)
	}
	if a, ok := any(asked).([]uint32); ok && os.Getenv("ZP") != "" {
		ks := any(keys).([]uint32)
		_ = a
		add := func(name string, f func([]uint32, []int)) {
			names, ways = append(names, name), append(ways, any(f).(func([]C, []int)))
		}
		add("binary", func(a []uint32, r []int) { RankBinary(ks, a, r) })
		for _, p := range []int{10, 19} {
			pg := NewPaged(ks, p)
			add(fmt.Sprint("pages ", p), pg.Rank)
		}
		s32 := implicit.Source[uint32]{Len: n, Codes: ks}
		for _, p := range []int{8, 12, 20} {
			t1, _ := Build(s32, Config{cfg, Geometry{K: 1, P: p}})
			add(fmt.Sprint("lines ", p), func(a []uint32, r []int) { RankLines(t1, a, r) })
			t2, _ := Build(s32, Config{cfg, Geometry{K: 2, P: p}})
			for _, how := range []simd.Narrow{simd.ByTable, simd.ByCount} {
				for _, fl := range []int{1, 8, 16, 32} {
					add(fmt.Sprint("sse ", p, " ", how, " ", fl), func(a []uint32, r []int) { RankSSE(t2, how, fl, a, r) })
				}
			}
			if p == 12 {
				for _, fl := range []int{16, 32, 64, 128, 256, 1024} {
					add(fmt.Sprint("levels ", fl), func(a []uint32, r []int) { t2.RankLevels(fl, a, r) })
				}
			}
		}
	}
	rounds := 24
	if os.Getenv("ZP") != "" {
		rounds = 3
	}
	best := make([]time.Duration, len(ways))
	for round := range rounds {
		for w, rank := range ways {
			s := time.Now()
			for lo := 0; lo < len(asked); lo += 8192 {
				rank(asked[lo:lo+8192], ranks[lo:lo+8192])
			}
			if d := time.Since(s); round == 0 || d < best[w] {
				best[w] = d
			}
		}
	}
	for w, name := range names {
		fmt.Printf("%s: %.2f ns\n", name, float64(best[w].Nanoseconds())/float64(len(asked)))
	}
}
