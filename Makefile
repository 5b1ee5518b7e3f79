# What a contributor runs. `make` alone checks what a commit must pass.

.PHONY: all test race tags cross vet generate fresh fuzz bench demo gpu-kit ci

all: vet test

# What a program links that imports the root package.
LIBRARY = . ./internal/arena ./internal/blocked ./internal/device/... ./internal/exec ./internal/implicit ./internal/order ./internal/par \
	./internal/simd ./internal/snapshot ./internal/text

test:
	go test ./...

# Tests of the root that take long and run on one goroutine, or have nothing to
# do with a GPU.
PLAIN = Every(Key|Value)Type|OpenTruncated|OpenLonger|OpenFlipped|OpenForged|OpenAwkward|OpenGarbage|BadFiles|Verify|MemoryLimit

# Tests of the root with several goroutines.
MANY = Concurrent|Close|Batcher|Buffer|ManyWorkers|EverySize|GPUGives|HybridGives|AutoPlans|Forgotten

# The packages that start goroutines, or are read by many. Of the root, whose
# tests take ten times as long under the detector, those that need it.
race:
	go test -race -short -run '$(MANY)' .
	go test -race -short ./internal/par ./internal/arena ./internal/order ./internal/snapshot ./internal/implicit ./internal/blocked ./internal/exec ./internal/device/...

# Pure Go, without the GPU, and without both. The command is left out: its
# libraries know the tag noasm, too, and would all be compiled again.
tags:
	go test -short -tags noasm . ./internal/simd ./internal/implicit ./internal/blocked ./internal/exec
	go test -short -tags nogpu -skip '$(PLAIN)' .
	go test -short -tags nogpu ./internal/device/...
	go build -tags noasm,nogpu $(LIBRARY)

# One of them with its tests, the others without: to compile those of the root
# takes a minute each time.
cross:
	GOARCH=arm64 go vet $(LIBRARY)
	GOOS=darwin GOARCH=arm64 go build $(LIBRARY)
	GOOS=windows go build ./...

vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these"; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	cd bench && go vet ./... && go tool -modfile=../go.mod staticcheck ./...

# Everything that is made from something else.
generate:
	go generate ./...
	cd bench && go generate ./...

# Generated files are as their generators write them.
fresh: generate
	git diff --exit-code

# Every fuzz target there is, a minute each.
fuzz:
	for p in . ./internal/table; do \
		for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
			go test -run '^$$' -fuzz "^$$f$$" -fuzztime 60s $$p || exit 1; \
		done; \
	done

bench:
	cd bench && go run . run point-u64 rank-u32 single-get build memory --n 16M,64M

demo:
	go run ./cmd/pando demo

# A folder to copy to a machine with a GPU and without Go: run.sh in it runs all
# tests and the benchmark.
gpu-kit:
	bash scripts/gpu-kit.sh

ci:
	bash .ci/run
