#!/usr/bin/env bash
# redis' own tests of commands that Pando has, against pando serve with an index in memory:
#
#   scripts/redis-tests.sh FOLDER [UNIT...]
#
# FOLDER has the sources of redis 7.0.15, or its folder tests alone; it is copied, and not changed. Needs tclsh. A test that fails since a command, an
# option or another type of value is not there is counted apart, and makes no error: docs/server.md says which these are. NAMES=1 prints each test.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] && [ -e "$1/tests/test_helper.tcl" ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v tclsh >/dev/null || { echo "redis-tests: there is no tclsh (Debian: apt-get install tcl)" >&2; exit 2; }
sources=$1
shift
units=("$@")
[ ${#units[@]} -gt 0 ] || units=(unit/type/string unit/type/incr unit/scan unit/keyspace unit/protocol)

work=$(mktemp -d)
server=
end() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
cp -r "$sources/tests" "$work/tests"
mkdir -p "$work/tests/tmp"
# An external server is asked to forget its functions, of which there are none.
sed -i 's/^\( *\)r function flush$/\1# no functions/' "$work/tests/support/server.tcl"
(cd "$here" && go build -o "$work/pando" ./cmd/pando)

# What a test says that asks for something that is not there.
lacks="unknown command|unknown subcommand|does not expire keys|DB index is out of range|no index is called"

failed=0
for unit in "${units[@]}"; do
	"$work/pando" serve --listen 127.0.0.1:0 >"$work/serve.log" 2>&1 &
	server=$!
	port=
	for _ in $(seq 600); do
		port=$(grep -om1 '127\.0\.0\.1:[0-9]*' "$work/serve.log" | cut -d: -f2) && break
		sleep 0.1
	done
	[ -n "$port" ] || { cat "$work/serve.log" >&2; exit 1; }
	log=$work/$(basename "$unit").log
	(cd "$work" && timeout 600 tclsh tests/test_helper.tcl --host 127.0.0.1 --port "$port" --singledb --durable --clients 1 \
		--ignore-encoding --ignore-digest --tags "-needs:debug -needs:repl -cluster:only" --single "$unit") 2>&1 | sed 's/\x1b\[[0-9;]*m//g' >"$log" || true
	kill "$server"
	wait "$server" || true
	server=
	awk -v unit="$unit" -v lacks="$lacks" -v names="${NAMES:-}" '
		function done_with() {
			if (name == "") return
			if (text ~ lacks) { missing++; if (names) print "  lacks: " name }
			else { bad++; print "  FAILS: " text }
			name = ""
		}
		/^\[ok\]/ { done_with(); ok++; if (names) print "  " $0; next }
		/^\[ignore\]|^\[skip\]/ { done_with(); ignored++; next }
		/^\[err\]/ { done_with(); name = $0; text = $0; next }
		/^\[|^Testing|^!!! WARNING|^                   The End/ { done_with(); next }
		name != "" { text = text "\n    " $0 }
		END { done_with(); printf "%-18s %3d pass, %d fail, %d lack a command, %d need another server\n", unit, ok, bad, missing, ignored; exit bad > 0 || ok == 0 }
	' "$log" || failed=1
done
exit $failed
