#!/usr/bin/env bash
# confluent-kafka (librdkafka) and kafka-python (its own protocol), each a row of its own.
. "$(dirname "$0")/../lib/suite.sh"

venv=$build/venv
if ! cmp -s "$suite_dir/requirements.txt" "$venv/complete"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q -r "$suite_dir/requirements.txt"
    cp "$suite_dir/requirements.txt" "$venv/complete"
fi
export PYTHONPATH=$root/compat-tests/lib PYTHONDONTWRITEBYTECODE=1
for program in confluent kafka_python; do
    timeout 200 "$venv/bin/python" "$suite_dir/$program.py" 2>"$build/$program.err" || failed=1
done
finish
