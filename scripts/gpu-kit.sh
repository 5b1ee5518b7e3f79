#!/usr/bin/env bash
# Builds every test, the benchmark and the pando command into one folder that
# works on a Linux machine (amd64) with a GPU and its driver: no Go, no toolkit.
#
#   scripts/gpu-kit.sh [FOLDER [PACKAGE...]]
#
# FOLDER is by default kit, in the root of the repository. With packages, such as
# ./internal/chunked, the kit has the tests of these alone, and is soon built.
# Copy the folder there and start run.sh in it; `run.sh help` says what it does.
# measure.sh tests and measures the tree on the GPU, figures.sh every figure of
# the papers.
#
#   run.sh, measure.sh, figures.sh what to start
#   ABOUT                          which source this is
#   bin/pando.xz, bin/bench.xz
#   PACKAGE/NAME.test.xz           where the package is in the repository, as
#   PACKAGE/testdata               tests look for their data beside them
#
# The binaries are packed, a third of their size, so that the kit is quickly
# copied and no package has to be left out. run.sh unpacks them.
set -euo pipefail
case ${1:-} in
"" | /*) kit=${1:-kit} ;;
*) kit=$PWD/$1 ;;
esac
shift $(($# > 0))
cd "$(dirname "$0")/.."
limit=60000000 # bytes, packed

# Nothing is deleted but an older kit.
if [ -e "$kit" ] && [ -n "$(ls -A "$kit")" ] && ! grep -qs '^Pando .* built by ' "$kit/ABOUT"; then
	echo "gpu-kit: $kit holds something that is not a kit; remove it, or name another folder" >&2
	exit 1
fi
rm -rf "$kit"
mkdir -p "$kit/bin"
kit=$(cd "$kit" && pwd)
cp scripts/gpu-kit-run.sh "$kit/run.sh"
cp scripts/gpu-kit-measure.sh "$kit/measure.sh"
cp scripts/gpu-kit-figures.sh "$kit/figures.sh"
chmod +x "$kit/run.sh" "$kit/measure.sh" "$kit/figures.sh"
echo "Pando $(git describe --always --dirty 2>/dev/null || echo 'of unknown version'), built by $(go env GOVERSION)" >"$kit/ABOUT"

export CGO_ENABLED=0 GOOS=linux GOARCH=amd64
flags=(-trimpath -buildvcs=false '-ldflags=-s -w')

# pack FILE: replaces it, and tells both sizes.
pack() {
	local plain packed name=${1#"$kit/"}
	plain=$(wc -c <"$1")
	xz -2 -T0 -f "$1"
	packed=$(wc -c <"$1.xz")
	printf '%6d kB %6d packed  %s\n' $((plain / 1000)) $((packed / 1000)) "${name#./}"
}

go build "${flags[@]}" -o "$kit/bin/pando" ./cmd/pando
pack "$kit/bin/pando"
(cd bench && go build "${flags[@]}" -o "$kit/bin/bench" .)
pack "$kit/bin/bench"

module=$(go list -m)
packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "${@:-./...}")
for package in $packages; do
	path=${package#"$module"}
	path=.$path # . for the root
	mkdir -p "$kit/$path"
	binary=$kit/$path/$(basename "$package").test
	go test -c "${flags[@]}" -o "$binary" "$package"
	pack "$binary"
	if [ -d "$path/testdata" ]; then
		cp -R "$path/testdata" "$kit/$path/"
	fi
done

total=$(find "$kit" -type f -exec cat {} + | wc -c)
echo "$((total / 1000)) kB in all, in $kit"
if [ "$total" -gt $limit ]; then
	echo "gpu-kit: that is more than $((limit / 1000)) kB" >&2
	exit 1
fi
