#!/usr/bin/env bash
# The rdkafka crate. Building librdkafka takes minutes the first time; nothing of it is kept in
# the broker's own target directory.
. "$(dirname "$0")/../lib/suite.sh"
export CARGO_TARGET_DIR=$root/target/compat-rdkafka
cargo build --locked --quiet --manifest-path "$suite_dir/Cargo.toml"
timeout 240 "$CARGO_TARGET_DIR/debug/ottla-compat-rdkafka" 2>"$build/stderr.log" || failed=1
for codec in none gzip snappy lz4 zstd; do
    check compression "$codec as stored" stored_as "$RUN-compression-$codec" "$codec"
done
finish
