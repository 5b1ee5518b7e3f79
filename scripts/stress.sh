#!/usr/bin/env bash
# Runs every test that was added or changed since a commit many times, plain and under the race
# detector, beside busy processes. A test that fails here by chance would fail in the gate one day.
#
#   scripts/stress.sh [REV]    REV is origin/main unless it is given; what is not committed counts, too
#
#   RUNS=200     runs of each test, of which no more are begun after
#   TIME=5m      this long
#   BUSY=8       busy processes beside
#   ONLY=Name    tests whose names match this pattern of grep -E
#
# Each run is a process of its own with a seed of its own. The output of a run that fails has its
# PANDO_SEED, and is kept. The exit status is 0 if all runs have passed, and there were some.
set -euo pipefail
cd "$(dirname "$0")/.."
rev=${1:-origin/main}
runs=${RUNS:-200} busy=${BUSY:-8} only=${ONLY:-.}
time=${TIME:-5m}
case $time in
*[!0-9]*[ms] | [ms]) time= ;;
*m) seconds=$((${time%m} * 60)) ;;
*s) seconds=${time%s} ;;
*) time= ;;
esac
[ -n "$time" ] || { echo "stress: TIME is a number of minutes or seconds, such as 5m or 20s" >&2 && exit 2; }
git rev-parse -q --verify "$rev^{commit}" >/dev/null || { echo "stress: there is no commit $rev" >&2 && exit 2; }

work=$(mktemp -d)
loads=()
end() {
	[ ${#loads[@]} = 0 ] || kill "${loads[@]}" 2>/dev/null || true
	[ -n "${keep:-}" ] || rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

# changed FILE prints the names of the tests in a file with a line that was added or changed since
# REV, or beside which one was removed. A test is a function from its first line to a brace alone.
changed() {
	{
		git diff -U0 --no-color "$rev" -- "$1" | sed -n 's/^@@ .* +\([0-9]*\)\(,\([0-9]*\)\)\{0,1\} @@.*/\1 \3/p'
		git ls-files --error-unmatch "$1" >/dev/null 2>&1 || echo "1 1000000" # not tracked yet
		echo end
		cat "$1"
	} | awk '
		!text && $1 == "end" { text = 1; next }
		!text { from[++n] = $1; to[n] = $1 + ($2 == "" ? 1 : $2) - 1; if (to[n] < from[n]) to[n] = from[n]; next }
		{ line++ }
		/^func (Test|Fuzz)[A-Z0-9_]?[A-Za-z0-9_]*\(/ { name = $2; sub(/\(.*/, "", name); began = line }
		name != "" && /^}/ {
			for (i = 1; i <= n; i++) if (from[i] <= line && to[i] >= began) { if (name != "TestMain") print name; break }
			name = ""
		}'
}

# tagOf FILE prints the build tag without which a file has no tests.
tagOf() { sed -n 's/^\/\/go:build .*\b\(stalls\|mutants\|invariants\|guard\)\b.*/\1/p' "$1" | head -n 1; }

# Lines of module, package, tag and test.
list=$work/list
{ git diff --name-only --diff-filter=d "$rev" -- '*_test.go' && git ls-files --others --exclude-standard -- '*_test.go'; } | sort -u | while read -r file; do
	module=$(dirname "$file")
	until [ -f "$module/go.mod" ]; do module=$(dirname "$module"); done
	package=$(realpath --relative-to "$module" "$(dirname "$file")")
	for name in $(changed "$file"); do
		echo "$module ./$package $(tagOf "$file" | grep . || echo none) $name"
	done
done | sort -u | { grep -E " [A-Za-z0-9_]*($only)[A-Za-z0-9_]*\$" || true; } >"$list"
if [ ! -s "$list" ]; then
	echo "No test has changed since $rev."
	exit 0
fi
echo "$(wc -l <"$list") tests have changed since $rev; each runs $runs times or $seconds s, twice, beside $busy busy processes."

for _ in $(seq "$busy"); do
	(while :; do :; done) &
	loads+=($!)
done

# binary MODULE PACKAGE TAG MODE compiles tests once, and prints where.
binary() {
	local out=$work/$(echo "$1 $2 $3 $4" | tr -c 'a-zA-Z0-9\n' _).test flags=()
	[ "$3" = none ] || flags+=(-tags "$3")
	[ "$4" = plain ] || flags+=(-race)
	[ -x "$out" ] || (cd "$1" && go test -c "${flags[@]}" -o "$out" "$2") >&2
	echo "$out"
}

table=$work/table
failed=0
while read -r module package tag name; do
	for mode in plain race; do
		program=$(binary "$module" "$package" "$tag" "$mode")
		done=0 bad=0 began=$SECONDS
		while [ $done -lt "$runs" ] && [ $((SECONDS - began)) -lt "$seconds" ]; do
			log=$work/run.txt
			if ! (cd "$module/$package" && "$program" -test.timeout=30m -test.run "^$name\$" -test.v) >"$log" 2>&1; then
				bad=$((bad + 1)) failed=1 keep=1
				mv "$log" "$work/$name-$mode-$bad.txt"
			elif ! grep -q "^ *--- \(PASS\|SKIP\): $name " "$log"; then
				echo "stress: $name of $package did not run" >&2
				failed=1
			fi
			done=$((done + 1))
		done
		skipped=$(grep -c "^--- SKIP: $name " "$work/run.txt" 2>/dev/null || true)
		printf '%-44s %-30s %-6s %5d runs %4d failed %5d s%s\n' "$name" "${module#.}${package#.}" "$mode" "$done" "$bad" $((SECONDS - began)) \
			"$([ "${skipped:-0}" = 0 ] || echo ', skipped')" | tee -a "$table"
	done
done <"$list"

echo
echo "$(grep -c ' 0 failed' "$table" || true) of $(wc -l <"$table") rows have no failure."
[ $failed = 0 ] || echo "What the runs that failed have printed is in $work."
exit $failed
