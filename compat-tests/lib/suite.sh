# Shared by the suites; sourced, not run. A suite is given BOOTSTRAP (host:port) and prints
#   client NAME VERSION                      first
#   PASS FEATURE DETAIL                      one line a check
#   FAIL FEATURE DETAIL: what was seen
#   SKIP FEATURE reason                      what this client or this run cannot show
# FEATURE is one of the columns of the table that scripts/compat writes.
# A suite ends with 0 when nothing failed.
# shellcheck shell=bash
set -euo pipefail

: "${BOOTSTRAP:?set BOOTSTRAP to the host:port of a broker}"
suite_dir=$(cd "$(dirname "$0")" && pwd)
suite=$(basename "$suite_dir")
root=$(cd "$suite_dir/../.." && pwd)
# What a suite builds or downloads lies here, outside the sources, and is kept between runs.
build=$root/target/compat/build/$suite
mkdir -p "$build"
# Every topic and group of this run begins with this name, so that runs do not meet.
RUN=c-$suite-$(date +%s)-$$
export BOOTSTRAP RUN

work=$(mktemp -d)
failed=0
pids=()

# Ends what a check left running, by pid; a signal may have come first.
stop_all() {
    local pid
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    pids=()
}
trap 'stop_all; rm -rf "$work"' EXIT

# check FEATURE DETAIL COMMAND...: the command runs in a subshell of its own, where -e holds.
check() {
    local what="$1 $2" rc=0
    shift 2
    set +e
    (set -e; pids=(); trap stop_all EXIT; "$@") >"$work/check.out" 2>&1
    rc=$?
    set -e
    if [ "$rc" = 0 ]; then
        echo "PASS $what"
    else
        failed=1
        echo "FAIL $what: exit $rc: $(tail -n 6 "$work/check.out" | tr '\n' '|' | cut -c1-600)"
    fi
}

skip() { echo "SKIP $*"; }

# until_true SECONDS COMMAND...: waits for a condition rather than for a time.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then echo "never came true: $*"; return 1; fi
        sleep 0.1
    done
}

# stored_as TOPIC CODEC: a client may fall back to none without a word, so the log is asked.
stored_as() {
    local codecs
    codecs=$(timeout 20 python3 "$root/compat-tests/lib/stored.py" "$BOOTSTRAP" "$1")
    if [ "$codecs" != "$2" ]; then echo "$1 is stored as '$codecs', not '$2'"; return 1; fi
}

finish() { exit "$failed"; }
