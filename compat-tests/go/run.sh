#!/usr/bin/env bash
# franz-go, with its Admin package.
. "$(dirname "$0")/../lib/suite.sh"
(cd "$suite_dir" && go build -o "$build/suite" .)
timeout 240 "$build/suite" || failed=1
finish
