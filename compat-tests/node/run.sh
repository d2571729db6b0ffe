#!/usr/bin/env bash
# kafkajs, which speaks old versions of every API.
. "$(dirname "$0")/../lib/suite.sh"
# The modules are kept outside the sources; node looks for them beside the program.
if ! cmp -s "$suite_dir/package-lock.json" "$build/package-lock.json"; then
    cp "$suite_dir/package.json" "$suite_dir/package-lock.json" "$build/"
    (cd "$build" && npm ci --silent --no-audit --no-fund) || { rm -f "$build/package-lock.json"; exit 1; }
fi
cp "$suite_dir"/*.js "$build/"
KAFKAJS_NO_PARTITIONER_WARNING=1 timeout 240 node "$build/suite.js" 2>"$build/stderr.log" || failed=1
for codec in none gzip snappy lz4; do
    check compression "$codec as stored" stored_as "$RUN-compression-$codec" "$codec"
done
finish
