#!/usr/bin/env bash
# Tests and measures the tree on a GPU, step by step, each within a time limit.
# It is part of a kit that `make gpu-kit` builds, and works in that folder only.
#
#   ./measure.sh OUT           everything
#   ./measure.sh OUT STEP...   some steps, or groups of them
#   ./measure.sh list          what there is, with limits in seconds
#
# OUT gets a text file of what each step wrote, for benchmarks a JSON file, and
# summary.txt with a line a step. A step that fails or takes too long does not
# stop the others. Without a GPU everything is skipped by itself.
#
#   PANDO_MVGPUBTREE=FOLDER    sources of MVGpuBTree (github.com/owensgroup),
#                              a peer that nvcc then compiles
#   PANDO_N=64M                entries, for all benchmarks but those of a billion
#   PANDO_QUERIES=1M           operations of a batch at most, for a quick look
set -u
start=$PWD
cd "$(dirname "$0")" || exit 1
n=${PANDO_N:-64M}
quick=()
[ -n "${PANDO_QUERIES:-}" ] && quick=(--queries "$PANDO_QUERIES")

# The steps in the order of what matters most: group, name, limit in seconds, and
# the command. JSON stands for the step's result file.
steps() {
	cat <<-TEXT
		tests       chunked-test     120  PANDO_LONG=1 PANDO_SEEDS=40 ./run.sh test internal/chunked -test.v -test.run OnGPU|Watched
		tests       cuart-test       120  PANDO_LONG=1 PANDO_SEEDS=40 ./run.sh test internal/cuart -test.v -test.run OnGPU
		tests       tree-test        120  PANDO_LONG=1 ./run.sh test tests/devices -test.v -test.run Tree
		tests       sort-test        120  PANDO_LONG=1 ./run.sh test internal/device/kernel -test.v -test.run Sort|Sum
		tests       kernels-test     120  PANDO_LONG=1 ./run.sh test tests/kernels -test.v -test.run GPU
		tests       cuda-test        120  PANDO_LONG=1 ./run.sh test internal/device/cuda -test.v
		update      update           150  ./run.sh bench run gpu-update --n $n --rounds 5 --json JSON
		update      shapes            90  ./run.sh bench run gpu-update-shapes --n $n --rounds 5 --json JSON
		update      find             120  ./run.sh bench run gpu-tree-find --n $n --rounds 5 --json JSON
		update      u32              180  ./run.sh bench run gpu-tree-u32 --rounds 3 --json JSON
		endtoend    endtoend         300  ./run.sh bench run gpu-tree-endtoend --n $n --rounds 3 --json JSON
		endtoend-one endtoend-1k     60  ./run.sh bench run gpu-tree-endtoend --n $n --queries 1k --systems deviceonly --rounds 3 --json JSON
		endtoend-one endtoend-64k    60  ./run.sh bench run gpu-tree-endtoend --n $n --queries 64k --systems deviceonly --rounds 3 --json JSON
		endtoend-one endtoend-1m     60  ./run.sh bench run gpu-tree-endtoend --n $n --queries 1M --systems deviceonly --rounds 3 --json JSON
		endtoend-one endtoend-4m     60  ./run.sh bench run gpu-tree-endtoend --n $n --queries 4M --systems deviceonly --rounds 3 --json JSON
		endtoend-one endtoend-16m    60  ./run.sh bench run gpu-tree-endtoend --n $n --queries 16M --systems deviceonly --rounds 3 --json JSON
		strings     radix            300  ./run.sh bench run gpu-radix --n $n --rounds 3 --json JSON
		strings     radix-host       120  ./run.sh bench run gpu-radix-host --n 4M --rounds 3 --json JSON
		strings     radix-long       120  ./run.sh bench run gpu-radix-long --rounds 2 --json JSON
		vectors     vector-test       60  PANDO_SEEDS=150 ./run.sh test internal/vector -test.v -test.run OnGPU
		vectors     vector-faces      60  PANDO_LONG=1 ./run.sh test tests/vectors -test.v -test.run OnRealGPU
		vectors     aggregate        110  ./run.sh bench run gpu-aggregate --n $n --rounds 5 --json JSON
		vectors     cpu-aggregate     60  ./run.sh bench run aggregate --n $n --threads $(nproc) --rounds 5 --json JSON
		primitives  chunked-bench     60  ./run.sh test internal/chunked -test.run ^$ -test.bench Chunked -test.benchtime 20x
		primitives  sort-bench        90  ./run.sh test internal/device/kernel -test.run ^$ -test.bench Sort|Sum -test.benchtime 20x
		primitives  driver-bench      60  ./run.sh test internal/device/cuda -test.run ^$ -test.bench Grow|Graph
		papers      hb-ways          120  ./run.sh bench run update-ways --n $n --rounds 3 --json JSON
		papers      hb-batches       120  ./run.sh bench run update-batches --n $n --rounds 3 --json JSON
		papers      hb-rebuild       120  ./run.sh bench run rebuild --n $n --rounds 3 --json JSON
		papers      hb-mix           120  ./run.sh bench run update-mix --n $n --threads $(nproc) --rounds 3 --json JSON
		billion     update-1g        240  ./run.sh bench run gpu-update --n ${PANDO_N:-1G} --rounds 3 --json JSON
		sanitize    sanitize-chunked 300  SANITIZE_TOOLS=memcheck ./run.sh sanitize internal/chunked -test.run OnGPU
		sanitize    race-chunked     120  SANITIZE_TOOLS=racecheck ./run.sh sanitize internal/chunked -test.run WaysOnGPU
		latches     latch-test        90  PANDO_LONG=1 PANDO_SEEDS=50 ./run.sh test papers/thesis -test.v -test.run (Blink|BlinkLoad|BlinkLarge|BlinkOne)OnGPU$
		latches     pages-test        60  PANDO_LONG=1 PANDO_SEEDS=50 ./run.sh test papers/kaczmarek -test.v -test.run OnGPU
		latches     latch-rounds     200  PANDO_SEEDS=10000 ./run.sh test papers/thesis -test.v -test.run BlinkRoundsOnGPU
		latches     latch-insert     120  ./run.sh bench run gpu-latched-insert --n $n --rounds 3 --json JSON
		latches     latch-hot         60  ./run.sh bench run gpu-latched-hot --n $n --rounds 3 --seconds 0.3 --json JSON
		latches     latch-single      90  ./run.sh bench run gpu-single-insert --rounds 3 --json JSON
		latches     latch-dict        90  ./run.sh bench run gpu-dict-insert gpu-dict-search --n 1k,32k,1M --rounds 2 --systems std::map --json JSON
		latches     latch-dict-32m   120  ./run.sh bench run gpu-dict-insert gpu-dict-search --n 32M --rounds 2 --systems none --json JSON
		latches     page-visit       120  ./run.sh bench run gpu-visit --n 1M,32M --rounds 3 --json JSON
		latches     page-size         60  ./run.sh bench run gpu-page-size --n 5k,30k --rounds 1 --json JSON
		latches     page-size-100k    90  ./run.sh bench run gpu-page-size --n 100k --rounds 1 --json JSON
		sanitize    sanitize-cuart   300  SANITIZE_TOOLS=memcheck,racecheck PANDO_SEEDS=3 ./run.sh sanitize internal/cuart -test.run (Find|Apply|Nodes)OnGPU
		sanitize    sanitize-sort    300  SANITIZE_TOOLS=memcheck,racecheck ./run.sh sanitize internal/device/kernel -test.run Sort$|Sum$
		sanitize-latches sanitize-latch 300  SANITIZE_TOOLS=memcheck,racecheck PANDO_SEEDS=2 ./run.sh sanitize papers/thesis -test.run OnGPU
		sanitize-latches sanitize-pages 300  SANITIZE_TOOLS=memcheck,racecheck PANDO_SEEDS=2 ./run.sh sanitize papers/kaczmarek -test.run OnGPU
	TEXT
}

# run_step NAME LIMIT COMMAND... runs one step, and adds a line to the summary.
run_step() {
	local name=$1 limit=$2 began=$SECONDS rc words=() word variables=()
	shift 2
	for word; do
		case $word in
		JSON) words+=("$out/$name.json") ;;
		[A-Z]*=*) [ ${#words[@]} = 0 ] && variables+=("$word") || words+=("$word") ;;
		*) words+=("$word") ;;
		esac
	done
	[ "${words[1]}" = bench ] && words+=(${quick[@]+"${quick[@]}"})
	echo "== $name (at most $limit s): ${words[*]}"
	env ${variables[@]+"${variables[@]}"} timeout --kill-after=10 "$limit" "${words[@]}" >"$out/$name.txt" 2>"$out/$name.log"
	rc=$?
	local how=ok
	case $rc in
	0) grep -qs 'there is none to use here\|the tree is on cpu\|no GPU: ' "$out/$name.txt" "$out/$name.log" && how="ok, without a GPU" ;;
	124 | 137) how="TOO LONG" ;;
	*) how="FAILED ($rc)" failed=1 ;;
	esac
	printf '%-18s %4d s  %s\n' "$name" $((SECONDS - began)) "$how" | tee -a "$out/summary.txt"
	[ $rc = 0 ] || tail -n 5 "$out/$name.txt" "$out/$name.log"
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
shift
mkdir -p "$out" || exit 1
[ $# = 0 ] && set -- tests update endtoend vectors primitives papers billion latches sanitize sanitize-latches
for wanted; do
	steps | awk -v w="$wanted" '$1 == w || $2 == w { hit = 1 } END { exit !hit }' && continue
	echo "measure.sh: there is no step or group $wanted; ./measure.sh list shows them" >&2
	exit 2
done
failed=0
{
	cat ABOUT
	date -u
	nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv 2>/dev/null
	nvcc --version 2>/dev/null | tail -n 2
	./run.sh devices
} >"$out/machine.txt" 2>&1
while read -r group name limit command; do
	for wanted; do
		if [ "$wanted" = "$group" ] || [ "$wanted" = "$name" ]; then
			set -f # no word of a command is a pattern
			# shellcheck disable=SC2086
			run_step "$name" "$limit" $command </dev/null
			set +f
			break
		fi
	done
done < <(steps)
exit $failed
