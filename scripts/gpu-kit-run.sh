#!/usr/bin/env bash
# Runs Pando's tests and benchmark on a machine with a GPU and without Go. It is
# part of a kit that `make gpu-kit` builds, and works in that folder only.
set -u
cd "$(dirname "$0")" || exit 1
passed=0 failed=0

usage() {
	cat <<-'TEXT'
		./run.sh                       all tests: a line for each package, and the
		                               output of those that fail
		./run.sh all FLAG...           the same with flags for the tests, such as
		                               -test.run=NAME; PANDO_LONG=1 makes more of each
		./run.sh test PACKAGE FLAG...  one package, with its output; PACKAGE is a
		                               folder of the kit, or . for the root
		./run.sh sanitize [PACKAGE...] [FLAG...]
		                               the tests of kernels and driver under the tools
		                               of NVIDIA's compute-sanitizer, with flags for
		                               them; SANITIZE_TOOLS=memcheck,racecheck takes
		                               only these tools
		./run.sh bench ARG...          the benchmark; `./run.sh bench list` names the
		                               experiments
		./run.sh devices               what this machine has to run on
	TEXT
}

# unpack makes the binaries ready, once.
unpack() {
	find . \( -name '*.test.xz' -o -path './bin/*.xz' \) -exec xz -df {} + && return
	echo "run.sh: could not unpack with xz; copy the kit to a folder that can be written" >&2
	exit 1
}

packages() { find . -name '*.test' | sed 's|^\./||; s|/*[^/]*$||; s|^$|.|' | sort; }

# within PACKAGE COMMAND... runs a command in the folder of a package, with the
# test binary in the place of the word TEST.
within() (
	cd "$1" || exit 1
	shift
	binary=(./*.test)
	command=()
	for word; do
		[ "$word" = TEST ] && word=${binary[0]}
		command+=("$word")
	done
	"${command[@]}"
)

# checked PACKAGE complains if there is no such package in the kit.
checked() {
	packages | grep -qxF -- "$1" && return
	echo "run.sh: no package $1 in this kit; it has" >&2
	packages | sed 's/^/  /' >&2
	exit 2
}

# tally NAME COMMAND... runs a test, says in a line how it went, and shows what
# it wrote if it failed.
tally() {
	local name=$1 start=$SECONDS log
	shift
	log=$(mktemp) || exit 1
	if "$@" >"$log" 2>&1; then
		passed=$((passed + 1))
		echo "ok    $name ($((SECONDS - start)) s)"
	else
		failed=$((failed + 1))
		echo "FAIL  $name ($((SECONDS - start)) s)"
		sed 's/^/      /' "$log"
	fi
	rm -f "$log"
}

# finish ends a run of tests.
finish() {
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
	exit
}

run_all() {
	local package
	cat ABOUT
	bin/pando devices # no GPU there: tests that need one are skipped
	for package in $(packages); do
		tally "$package" within "$package" TEST -test.timeout=30m "$@"
	done
	finish
}

run_test() {
	if [ $# = 0 ]; then
		usage >&2
		exit 2
	fi
	local package=${1#./}
	package=${package%/}
	package=${package:-.}
	shift
	checked "$package"
	if within "$package" TEST -test.timeout=30m "$@"; then
		passed=1
	else
		failed=1
	fi
	finish
}

sanitizer() {
	local found
	for found in "${COMPUTE_SANITIZER:-}" "$(command -v compute-sanitizer)" \
		/usr/local/cuda*/bin/compute-sanitizer /opt/cuda/bin/compute-sanitizer; do
		if [ -x "$found" ]; then
			echo "$found"
			return
		fi
	done
	return 1
}

# Tests ask for errors on purpose, so only what kernels do is a finding. Those
# that end a context do so in a process of their own, which is left alone.
sanitize() {
	local program package tool tools packages=()
	while [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; do
		packages+=("$1")
		shift
	done
	if ! program=$(sanitizer); then
		echo "run.sh: no compute-sanitizer on this machine, so nothing was checked." >&2
		echo "It is part of the CUDA toolkit. COMPUTE_SANITIZER may give its path." >&2
		exit 1
	fi
	[ ${#packages[@]} = 0 ] && packages=(internal/device/kernel tests/kernels internal/device/cuda)
	for package in "${packages[@]}"; do
		checked "$package"
		tools="memcheck racecheck initcheck synccheck"
		# The driver's test kernels share nothing and wait on purpose, which the
		# other tools make last for ever.
		[ "$package" = internal/device/cuda ] && tools=memcheck
		[ -n "${SANITIZE_TOOLS:-}" ] && tools=${SANITIZE_TOOLS//,/ }
		for tool in $tools; do
			tally "$tool $package" within "$package" "$program" --tool "$tool" --error-exitcode 99 \
				--target-processes application-only --report-api-errors no TEST -test.timeout=60m "$@"
		done
	done
	finish
}

verb=${1:-all}
[ $# -gt 0 ] && shift
unpack
case $verb in
all) run_all "$@" ;;
test) run_test "$@" ;;
sanitize) sanitize "$@" ;;
bench) exec bin/bench "$@" ;;
devices) exec bin/pando devices "$@" ;;
help | -h | --help) usage ;;
*)
	usage >&2
	exit 2
	;;
esac
