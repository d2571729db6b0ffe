#!/usr/bin/env bash
# kafkajs, with the codecs that its users add for snappy and lz4.
. "$(dirname "$0")/../lib/suite.sh"

modules=$build/modules
if ! cmp -s "$suite_dir/package.json" "$modules/complete"; then
    rm -rf "$modules"
    mkdir -p "$modules"
    cp "$suite_dir/package.json" "$modules/"
    (cd "$modules" && npm install --silent --no-audit --no-fund --no-package-lock >"$build/npm.log" 2>&1) \
        || { cat "$build/npm.log" >&2; exit 1; }
    cp "$suite_dir/package.json" "$modules/complete"
fi
export NODE_PATH=$modules/node_modules KAFKAJS_NO_PARTITIONER_WARNING=1 ROOT=$root
timeout 200 node "$suite_dir/suite.js" 2>"$build/suite.err" || failed=1
finish
