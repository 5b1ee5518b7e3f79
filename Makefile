# What a contributor runs. `make` alone checks what a commit must pass.

.PHONY: all test long race race-trees race-devices race-all invariants stalls mutants tags test-386 cross cross-all guard attack browser parquet clients vet generate web fresh fuzz bench report pictures figures report-script demo gpu-kit ci

all: vet test

# What a program links that imports the root package, the store, the server, and the driver.
LIBRARY = . $(shell go list -deps . ./cuda ./pandostore ./pandoserver | sed -n 's|^github.com/pando-index/pando/|./|p')

# Tests with several goroutines, and the packages whose own tests have some: those of
# trees on the CPU, and those of devices, most of which an interpreter of kernels runs.
TREES = ./tests/concurrent ./tests/linearizable ./internal/par ./internal/arena ./internal/files ./internal/flow \
	./internal/blob ./internal/epoch ./internal/live ./internal/bplus ./internal/radix ./internal/backlog ./internal/mirror ./internal/vector ./pandoview ./pandostore/... ./pandoserver/...
DEVICES = ./tests/devices ./internal/twin ./internal/cuart ./internal/exec \
	./internal/device ./internal/device/cuda ./internal/device/faulty ./internal/device/ptx

# What a person runs: two minutes on two cores, and three and a half more where nothing is compiled.
test:
	go test ./...

# The same tests with more of everything: seeds, sizes, schedules, histories, faults.
# PANDO_LONG=10 make long has ten times as much of what is counted. Package internal/seed says how.
long: export PANDO_LONG ?= 1
long:
	go test -timeout 60m ./...

# Packages that use goroutines only to build and to sort.
BUILDING = ./internal/order ./internal/trie ./internal/implicit ./internal/blocked ./internal/packed ./internal/words ./internal/layouttest

# Everything that runs on several goroutines, under the race detector.
race: race-trees race-devices

race-trees:
	go test -race $(TREES)
	go test -race -run 'BesideNext|Serve' ./cmd/pando

race-devices:
	go test -race $(DEVICES)

race-all: race
	go test -race $(BUILDING)

# What the authors of the code knew to be true, checked as it runs.
invariants:
	go test -tags invariants ./internal/invariant ./internal/flow ./internal/exec ./tests/paths

# Layouts whose memory ends at a page that cannot be read.
guard:
	go test -tags guard ./internal/arena ./internal/blob ./internal/implicit ./internal/blocked ./internal/packed ./internal/words ./internal/strlist ./internal/layouttest

# Attacks, between such pages, for as long as TIME says; ATTACK has more flags,
# such as -attack.only=files. docs/attack.md.
TIME = 1m
attack:
	go test -v -tags guard -timeout 0 -run '^TestAttack$$' ./tests/attack -attack.time=$(TIME) $(ATTACK)
	@echo "Longest stop of the world under every operation: cd bench && go run . run stops"

# Goroutines held up between the steps of the tree's protocol.
stalls:
	go test -tags stalls ./internal/blob ./internal/epoch ./internal/bplus ./internal/radix ./tests/concurrent ./tests/linearizable

# One part of the protocol left out at a time: some test must fail for each.
mutants:
	go test -count=1 -v -timeout 60m -tags mutants ./tests/mutants

# Pure Go, without the GPU, and without both. The command is left out: its
# libraries know the tag noasm, too, and would all be compiled again.
tags:
	go test -tags noasm ./internal/simd ./internal/implicit ./internal/blocked ./internal/packed ./internal/words ./internal/layouttest ./internal/epoch ./internal/bplus ./internal/vector ./papers/fast ./papers/hbplus ./tests/paths ./tests/vectors ./tests/linearizable
	go test -tags nogpu ./cuda ./tests/devices ./tests/kernels ./internal/device/...
	go build -tags noasm,nogpu $(LIBRARY)

# Tests of 386, which a Linux machine on amd64 can run: those of the root package and
# of what differs where an address has 32 bits.
test-386:
	CGO_ENABLED=0 GOOS=linux GOARCH=386 go test . ./internal/arena ./internal/blob ./internal/files ./internal/order

# The library for other systems.
cross:
	GOOS=linux GOARCH=arm64 go build $(LIBRARY)
	GOOS=linux GOARCH=386 go build $(LIBRARY)
	GOOS=darwin GOARCH=arm64 go build $(LIBRARY)
	GOOS=windows GOARCH=amd64 go build $(LIBRARY)

# The page of package pandoview in a real browser, if there is one (Debian:
# apt-get install chromium). SHOTS=folder keeps pictures, PANDO_VIEW_ENTRIES=64M
# opens an index of that size and wants it on the screen within two seconds.
browser:
	cd tests/browser && PANDO_SHOTS=$(abspath $(SHOTS)) go test -count=1 ./...

# Files of Arrow's Parquet library, which takes longer to compile than the command.
parquet:
	cd tests/parquet && go test ./...

# Clients of redis with their defaults, which are more modules than the server. npm gets
# those in JavaScript.
clients:
	cd tests/clients/node && npm ci --silent --no-audit --no-fund
	cd tests/clients && go test -count=1 ./...

vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these"; exit 1; }
	@for m in internal/simd/_gen . tests/browser tests/parquet tests/clients bench; do \
		echo "$$m: go vet, staticcheck"; \
		(cd $$m && go vet ./... && go tool -modfile=$(CURDIR)/go.mod staticcheck ./...) || exit 1; \
	done

# Everything that is made from something else.
generate:
	go generate ./...
	cd bench && go generate ./...

# The page of package pandoview, from its TypeScript. Needs npm; `make generate`
# does it too, and leaves the page as it is where there is none.
web:
	bash pandoview/web/build.sh

# Generated files are as their generators write them.
fresh: generate
	git diff --exit-code

# Every fuzz target there is, a minute each.
fuzz:
	for p in . ./internal/table ./internal/blob ./tests/files ./pandostore/internal/log ./pandoserver/internal/resp; do \
		for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
			go test -run '^$$' -fuzz "^$$f$$" -fuzztime 60s $$p || exit 1; \
		done; \
	done

bench:
	cd bench && go run . run point-u64 rank-u32 single-get build memory --n 16M,64M

# Every figure of the papers beside ours, of the results that are kept. New ones
# join by: cd bench && go run . report FILE... --json results/NAME.json.gz
report: pictures
	cd bench && go run . report results --out ../docs/report.html

# The pictures of README.md: a tree in the viewer, which stays as it is where there is
# no chromium, and lookups beside every peer, by the results that are kept.
pictures:
	cd tests/browser && PANDO_PICTURE=$(abspath docs/pictures/tree.png) go test -count=1 -run '^TestPicture$$' ./...
	cd bench && go run . report results --picture ../docs/pictures/lookups.svg --readme ../README.md

# Each plot as a picture for a document, several for each figure.
figures:
	cd bench && go run . report results --svg ../docs/figures

# The types of the report's script. Needs npm, which nothing else does.
report-script:
	cd bench/report/web && npm install --no-package-lock --no-audit --no-fund && npm run check
	cmp bench/report/web/node_modules/uplot/dist/uPlot.iife.min.js bench/report/web/uPlot.iife.min.js

demo:
	go run ./cmd/demo

# A folder to copy to a machine with a GPU and without Go: run.sh in it runs all
# tests and the benchmark.
gpu-kit:
	bash scripts/gpu-kit.sh

ci:
	bash .ci/run

# More systems, the tests of one with 64 bits and of one with 32, and the command.
cross-all: cross
	GOOS=linux GOARCH=arm go build $(LIBRARY)
	GOOS=linux GOARCH=mipsle go build $(LIBRARY)
	GOOS=linux GOARCH=arm64 go vet $(LIBRARY)
	GOOS=linux GOARCH=386 go vet $(LIBRARY)
	GOOS=windows GOARCH=amd64 go build ./...
	GOOS=linux GOARCH=386 go build ./...
