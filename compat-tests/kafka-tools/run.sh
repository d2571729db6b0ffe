#!/usr/bin/env bash
# The command-line tools of Apache Kafka, all in one JVM: the start of each would take longer
# than its work. LOG_DIR, a log directory of the broker, adds kafka-dump-log.
. "$(dirname "$0")/../lib/suite.sh"
. "$root/compat-tests/lib/java.sh"
java_main Tools 2>"$build/stderr.log"
