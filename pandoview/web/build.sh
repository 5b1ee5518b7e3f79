#!/usr/bin/env bash
# Builds the page of package pandoview: checks the types, bundles, and notes what
# it was made from. Needs node and npm; without them what is committed stays, and
# the test TestPageIsFresh compares its sources.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v npm >/dev/null; then
	echo "pandoview: npm is not here, so the page is not built anew" >&2
	exit 0
fi
if [ ! -x node_modules/.bin/esbuild ] || ! cmp -s package-lock.json node_modules/.lock; then
	if ! npm ci --no-audit --no-fund --silent; then
		echo "pandoview: the page's tools cannot be installed, so the page is not built anew" >&2
		exit 0
	fi
	cp package-lock.json node_modules/.lock
fi
npm run --silent check
npm run --silent build -- --log-level=warning
cp static/index.html static/app.css static/icon.svg ../dist/
# One line for each source, in an order that every machine has.
find src static package.json package-lock.json tsconfig.json -type f | LC_ALL=C sort | xargs sha256sum >../dist/sources.sum
