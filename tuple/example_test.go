package tuple_test

import (
	"fmt"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/tuple"
)

// The readings of each city, latest first.
func Example() {
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	key := func(city string, t time.Time) string { return tuple.Key(tuple.String(city), tuple.Desc(tuple.Time(t))) }
	keys := []string{key("Oslo", day(1)), key("Bergen", day(1)), key("Oslo", day(3)), key("Oslo", day(2))}
	ix, err := pando.Freeze(keys, []float64{4, 7, 2, 3})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	for k, degrees := range ix.Prefix(tuple.Key(tuple.String("Oslo"))) {
		var at time.Time
		if err := tuple.Scan(k, nil, &at); err != nil {
			panic(err)
		}
		fmt.Println(at.Format(time.DateOnly), degrees)
	}
	// Output:
	// 2026-11-03 2
	// 2026-11-02 3
	// 2026-11-01 4
}
