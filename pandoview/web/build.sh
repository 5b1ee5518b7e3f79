#!/usr/bin/env bash
# Builds the page of package pandoview: checks the types, bundles, and notes what
# it was made from. Needs node and npm; without them what is committed stays, and
# the test TestPageIsFresh compares its sources, unless PANDO_NEEDS_TOOLS is set.
set -euo pipefail
cd "$(dirname "$0")"

# without SENTENCE ends without a new page.
without() {
	echo "pandoview: $1, so the page is not built anew" >&2
	[ -z "${PANDO_NEEDS_TOOLS:-}" ]
	exit
}

command -v npm >/dev/null || without "npm is not here"
if [ ! -x node_modules/.bin/esbuild ] || ! cmp -s package-lock.json node_modules/.lock; then
	npm ci --no-audit --no-fund --silent || without "the page's tools cannot be installed"
	cp package-lock.json node_modules/.lock
fi
npm run --silent check
npm run --silent build -- --log-level=warning
cp static/index.html static/app.css static/icon.svg ../dist/
# One line for each source, in an order that every machine has.
find src static package.json package-lock.json tsconfig.json -type f | LC_ALL=C sort | xargs sha256sum >../dist/sources.sum
