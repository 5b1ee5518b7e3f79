module github.com/pando-index/pando/bench

go 1.25.0

require (
	github.com/google/btree v1.1.3
	github.com/pando-index/pando v0.0.0
	github.com/plar/go-adaptive-radix-tree/v2 v2.0.3
	github.com/tidwall/btree v1.8.1
)

require (
	github.com/ebitengine/purego v0.11.2 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/pando-index/pando => ../
