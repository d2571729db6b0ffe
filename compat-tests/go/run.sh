#!/usr/bin/env bash
# franz-go: speaks the newest versions of everything, topic ids and fetch sessions too.
. "$(dirname "$0")/../lib/suite.sh"

(cd "$suite_dir" && go build -o "$build/suite" .) || exit 1
export ROOT=$root
timeout 200 "$build/suite" 2>"$build/suite.err" || failed=1
finish
