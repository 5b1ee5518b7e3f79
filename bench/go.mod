module github.com/pando-index/pando/bench

go 1.25.0

require (
	github.com/dgraph-io/ristretto/v2 v2.4.2
	github.com/ebitengine/purego v0.11.2
	github.com/google/btree v1.1.3
	github.com/pando-index/pando v0.0.0
	github.com/plar/go-adaptive-radix-tree/v2 v2.0.3
	github.com/tidwall/btree v1.8.1
	github.com/zhangyunhao116/skipmap v0.10.1
)

require (
	github.com/VictoriaMetrics/fastcache v1.13.0 // indirect
	github.com/allegro/bigcache/v3 v3.1.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/coocood/freecache v1.2.7 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/golang/snappy v1.0.0 // indirect
	github.com/zhangyunhao116/fastrand v0.3.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/pando-index/pando => ../
