module github.com/pando-index/pando

go 1.25.0

require (
	github.com/ebitengine/purego v0.11.2 // indirect
	golang.org/x/sys v0.40.0 // indirect
)
