#!/usr/bin/env bash
# The Java client: producer, consumer in groups and alone, Admin.
. "$(dirname "$0")/../lib/suite.sh"
. "$root/compat-tests/lib/java.sh"
java_main Client 2>"$build/stderr.log" || { failed=1; grep error: "$build/stderr.log" || true; }
# The client says nothing of what it compressed with, so the log is asked.
for codec in none gzip snappy lz4 zstd; do
    check compression "$codec as stored" stored_as "$RUN-compression-$codec" "$codec"
done
finish
