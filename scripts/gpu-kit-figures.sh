#!/usr/bin/env bash
# Measures every experiment that a figure of the papers names, within a given
# time. It is part of a kit that `make gpu-kit` builds, and works in that folder
# only.
#
#   ./figures.sh OUT                   everything, in at most 540 seconds
#   ./figures.sh OUT SECONDS           the same in another time
#   ./figures.sh OUT SECONDS NAME...   some experiments, or lanes of them
#   ./figures.sh list                  what there is, with limits in seconds
#
# OUT gets a JSON file for each experiment and what it wrote, summary.txt with a
# line for each, and all results in results.json.gz and report.html, those of
# earlier runs into the same folder included. An experiment that takes too long
# keeps the sets of rows that it has finished, and says that it was cut short;
# one for which no time is left is named in summary.txt.
#
# Experiments of the lanes gpu and cpu run side by side, on cores of their own,
# for the first half of the time: those of lane gpu are timed on the GPU, those
# of lane cpu run on one thread, and no two of one lane run at once. What
# measures all cores, or CPU and GPU together, runs alone, in the second half.
set -u
start=$PWD
cd "$(dirname "$0")" || exit 1

# The experiments of each lane, the most important first: lane, limit in
# seconds, the name, and flags.
steps() {
	local all
	all=$(nproc)
	cat <<-TEXT
		cpu    60  point-u64          --n 16M --seconds 0.2
		cpu    20  node-search        --n 16M
		cpu    20  pipeline-length    --n 16M
		cpu    15  fanout             --n 16M
		cpu    15  pages              --n 16M
		cpu    20  skew               --n 16M
		cpu    20  dict-search        --n 1k,32k,1M --systems std::map,absl,tlx,tidwall
		cpu    20  dict-insert        --n 1k,32k,1M --systems std::map,absl,tlx,tidwall
		cpu    20  fast-steps         --n 64M,64k
		cpu    20  single-get         --n 16M --systems tidwall
		cpu    20  range              --n 16M --systems tidwall
		cpu    20  key-size           --n 64M
		cpu    20  key-entropy        --n 4M
		cpu    20  point-u32          --n 16M --systems tidwall,slices
		cpu    15  rank-u32           --n 16M --systems slices
		cpu    15  set-random         --n 1M
		cpu    15  scan               --n 4M --systems tidwall
		cpu    15  set-ascending      --n 1M
		gpu    70  gpu-point-u64      --n 64M
		gpu    45  gpu-dict-search    --n 1M,1k,32k,32M --systems std::map
		gpu    45  gpu-dict-insert    --n 1M,1k,32k,32M --systems std::map
		gpu    45  gpu-page-size      --n 5k,30k --rounds 1
		gpu    40  gpu-visit          --n 32M,1M
		gpu    30  gpu-single-insert  --n 64M,1M,16M,256M
		gpu    30  gpu-rank-u32       --n 64M
		gpu    40  gpu-layouts        --n 64M,1M,16M,256M
		gpu    60  gpu-radix-long     --n 1M
		gpu    60  gpu-radix          --n 16M --rounds 2
		alone  40  hybrid-sizes       --n 64M,8M,256M --queries 16M
		alone  25  hybrid-ways        --n 64M --queries 16M
		alone  25  hybrid-buckets     --n 64M --queries 16M
		alone  25  hybrid-skew        --n 64M --queries 16M
		alone  25  hybrid-balance     --n 64M --queries 16M
		alone  25  hybrid-ranges      --n 64M
		alone  30  update-ways        --n 16M --threads $all
		alone  25  rebuild            --n 16M
		alone  25  update-mix         --n 16M --threads $all
		alone  25  update-batches     --n 16M
		alone  25  fast-sizes         --n 64M,64k,1M,16M --queries 16M
		alone  20  gpu-endtoend       --n 64M --queries 32M
		alone  15  cuart-layout       --n 1M
		alone  15  cuart-sizes        --n 1M,64k,4M
		alone  15  cuart-updates      --n 1M
		alone  20  response-time      --n 64M
		alone  15  fast-build         --n 64M
		alone  20  build              --n 16M --threads $all --systems slices
		alone  15  cuart-keys         --n 1M
		alone  15  cuart-batch        --n 1M
		alone  15  cuart-threads      --n 1M
		alone  15  cuart-long         --n 1M
		alone  15  cuart-real         --n 1M
		alone  30  gpu-radix-host     --n 4M --rounds 3
		alone  60  gpu-radix-endtoend --n 16M --rounds 2
	TEXT
}

# cores FROM TO prints a part of the processors, in eighths of all, those of one
# core together; nothing where they cannot be told apart.
cores() {
	local numbers
	command -v taskset >/dev/null || return
	mapfile -t numbers < <(lscpu -p=cpu,core 2>/dev/null | grep -v '^#' | sort -t, -k2,2n -k1,1n | cut -d, -f1)
	[ ${#numbers[@]} = "$(nproc)" ] && [ ${#numbers[@]} -ge 8 ] || return
	local from=$((${#numbers[@]} * $1 / 8)) to=$((${#numbers[@]} * $2 / 8))
	(IFS=, && echo "${numbers[*]:from:to-from}")
}

# measure LANE UNTIL runs what is wanted of a lane, until that second.
measure() {
	local lane=$1 until=$2 group limit name flags tie=() on began rc how
	case $lane in
	gpu) on=$(cores 0 3) ;;
	cpu) on=$(cores 3 8) ;;
	*) on= ;;
	esac
	[ -n "$on" ] && tie=(taskset -c "$on")
	while read -r group limit name flags; do
		wants "$group" "$name" && [ "$group" = "$lane" ] || continue
		began=$SECONDS
		[ "$limit" -gt $((until - began)) ] && limit=$((until - began))
		if [ "$limit" -lt 5 ]; then
			note "$lane" "$name" 0 "no time left"
			continue
		fi
		# shellcheck disable=SC2086
		${tie[@]+"${tie[@]}"} timeout --kill-after=5 "$limit" bin/bench run "$name" --rounds 3 --seconds 0.1 --cores "$(nproc)" \
			--json "$out/$name.json" $flags </dev/null >"$out/$name.txt" 2>"$out/$name.log"
		rc=$?
		case $rc in
		0) how=ok ;;
		124 | 137) how="TOO LONG: $(cat "$out/$name.json" 2>/dev/null | grep -c '"system"') rows" ;;
		*) how="FAILED ($rc): $(tail -n 1 "$out/$name.log")" ;;
		esac
		note "$lane" "$name" $((SECONDS - began)) "$how"
	done < <(steps)
}

note() { printf '%-6s %-18s %4d s  %s\n' "$@" | tee -a "$out/summary.txt"; }

# wants LANE NAME reports whether an experiment was asked for.
wants() {
	local word
	[ ${#wanted[@]} = 0 ] && return
	for word in "${wanted[@]}"; do
		[ "$word" = "$1" ] || [ "$word" = "$2" ] && return
	done
	return 1
}

if [ "${1:-}" = list ]; then
	steps
	exit
fi
if [ $# = 0 ]; then
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
case $1 in
/*) out=$1 ;;
*) out=$start/$1 ;;
esac
budget=${2:-540}
shift $(($# > 1 ? 2 : 1))
wanted=("$@")
for word; do
	steps | awk -v w="$word" '$1 == w || $3 == w { hit = 1 } END { exit !hit }' && continue
	echo "figures.sh: there is no experiment or lane $word; ./figures.sh list shows them" >&2
	exit 2
done
mkdir -p "$out" || exit 1
SECONDS=0
{
	cat ABOUT
	date -u
	lscpu
	nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
	./run.sh devices # which unpacks the binaries, too
} >"$out/machine.txt" 2>&1
# Peers that a compiler makes are made once.
export PANDO_PEERS="$out/peers"

# Whoever is there alone has all the time.
lanes=$(steps | while read -r group _ name _; do wants "$group" "$name" && echo "$group"; done | sort -u)
half=$((budget / 2))
grep -q alone <<<"$lanes" || half=$budget
measure gpu $half &
measure cpu $half &
wait
measure alone "$budget"

rm -f "$out"/*.part
if compgen -G "$out/*.json" >/dev/null; then
	bin/bench report "$out"/*.json --json "$out/results.json.gz" --out "$out/report.html"
fi
echo "$SECONDS s in all, in $out"
