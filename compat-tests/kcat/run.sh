#!/usr/bin/env bash
# kcat, and with it librdkafka as distributions package it.
. "$(dirname "$0")/../lib/suite.sh"

echo "client kcat $(kcat -V | sed -n 's/^Version \([^ ]*\).*librdkafka \([^ ]*\).*/\1 (librdkafka \2)/p')"

kc() { timeout 25 kcat -b "$BOOTSTRAP" -q "$@"; }
# lines FROM TO: KEY:VALUE lines that compress well and differ.
lines() {
    seq "$1" "$2" | sed 's/.*/key-&:value &, and some text to compress, and some text to compress/'
}
same() { diff "$1" "$2" | head -n 5; cmp -s "$1" "$2"; }

compression() {
    local codec=$1 topic=$RUN-compression-$1
    lines 1 1000 >"$work/in"
    kc -P -t "$topic" -p 0 -K: -z "$codec" <"$work/in"
    kc -C -t "$topic" -p 0 -K: -e >"$work/out"
    same "$work/in" "$work/out"
    stored_as "$topic" "$codec"
}

acks() {
    local topic=$RUN-acks-$1
    lines 1 500 >"$work/in"
    kc -P -t "$topic" -p 0 -K: -X "acks=$1" <"$work/in"
    # With acks=0 nothing says when the last record is in.
    until_true 10 ends_at "$topic" 0 500
    kc -C -t "$topic" -p 0 -K: -c 500 >"$work/out"
    same "$work/in" "$work/out"
}

# ends_at TOPIC PARTITION OFFSET
ends_at() { [ "$(kc -Q -t "$1:$2:-1")" = "$1 [$2] offset $3" ]; }

idempotence() {
    local topic=$RUN-idempotence
    lines 1 2000 >"$work/in"
    kc -P -t "$topic" -p 0 -K: -X enable.idempotence=true <"$work/in"
    kc -C -t "$topic" -p 0 -K: -e >"$work/out"
    same "$work/in" "$work/out"
}

keys() {
    local topic=$RUN-keys
    printf 'k1:v1\n:empty key\nk2:\n' | kc -P -t "$topic" -p 0 -K: -Z
    echo 'no key' | kc -P -t "$topic" -p 0
    # Lengths tell nothing (-1) from an empty string (0).
    kc -C -t "$topic" -p 0 -e -f '%k=%K %s=%S\n' >"$work/out"
    printf 'k1=2 v1=2\n=-1 empty key=9\nk2=2 =-1\n=-1 no key=6\n' >"$work/want"
    same "$work/want" "$work/out"
}

# The same key goes to the same partition, whichever client hashes it (Java's murmur2).
partitioner() {
    local topic=$four partitions
    lines 1 100 | kc -P -t "$topic" -K: -X partitioner=murmur2_random
    lines 1 100 | kc -P -t "$topic" -K: -X partitioner=murmur2_random
    kc -C -t "$topic" -e -f '%k %p\n' | sort -u >"$work/out"
    [ "$(wc -l <"$work/out")" = 100 ]
    partitions=$(cut -d' ' -f2 "$work/out" | sort -u | wc -l)
    [ "$partitions" = 4 ]
}

headers() {
    local topic=$RUN-headers
    echo v | kc -P -t "$topic" -p 0 -H a=1 -H b= -H a=2
    kc -C -t "$topic" -p 0 -e -f '%h %s\n' >"$work/out"
    echo 'a=1,b=,a=2 v' >"$work/want"
    same "$work/want" "$work/out"
}

offsets_prepare() { lines 1 100 | kc -P -t "$RUN-offsets" -p 0 -K:; }

# offsets_from OPTION FIRST: what `-o OPTION` reads begins at record FIRST and goes to the end.
offsets_from() {
    kc -C -t "$RUN-offsets" -p 0 -o "$1" -e -K: >"$work/out"
    lines "$2" 100 >"$work/want"
    same "$work/want" "$work/out"
}

offsets_end() {
    one_more_at_the_end || true
    kcat -b "$BOOTSTRAP" -q -u -C -t "$RUN-offsets-end" -p 0 -o end -K: >"$work/end" 2>"$work/err" &
    pids+=($!)
    # `end` is resolved once the consumer runs, so records are sent until one arrives.
    until_true 15 one_more_at_the_end
}
one_more_at_the_end() {
    lines 1 1 | kc -P -t "$RUN-offsets-end" -p 0 -K:
    [ -s "$work/end" ]
}

# A consumer gets a record that is larger than all its limits.
offsets_large() {
    local topic=$RUN-large
    head -c 500000 /dev/urandom | base64 -w 0 >"$work/in"
    kc -P -t "$topic" -p 0 "$work/in"
    kc -C -t "$topic" -p 0 -e -D '' -X message.max.bytes=1000 -X fetch.max.bytes=1000 \
        -X fetch.message.max.bytes=1000 >"$work/out"
    same "$work/in" "$work/out"
}

offsets_query() {
    [ "$(kc -Q -t "$RUN-offsets:0:-2")" = "$RUN-offsets [0] offset 0" ]
    [ "$(kc -Q -t "$RUN-offsets:0:-1")" = "$RUN-offsets [0] offset 100" ]
}

# Below the start or above the end the consumer's own policy decides.
offsets_out_of_range() {
    kc -C -t "$RUN-offsets" -p 0 -o 1000 -e -K: -X auto.offset.reset=earliest >"$work/out"
    lines 1 100 >"$work/want"
    same "$work/want" "$work/out"
    ! kc -C -t "$RUN-offsets" -p 0 -o 1000 -e -K: -X auto.offset.reset=error
}

now_ms() { date +%s%3N; }
is_past() { [ "$(now_ms)" -gt "$1" ]; }

timestamps() {
    local topic=$RUN-timestamps middle late
    lines 1 50 | kc -P -t "$topic" -p 0 -K:
    middle=$(($(now_ms) + 1))
    until_true 5 is_past "$middle"
    lines 51 100 | kc -P -t "$topic" -p 0 -K:
    late=$(($(now_ms) + 60000))
    [ "$(kc -Q -t "$topic:0:$middle")" = "$topic [0] offset 50" ]
    [ "$(kc -Q -t "$topic:0:1")" = "$topic [0] offset 0" ]
    [ "$(kc -Q -t "$topic:0:$late")" = "$topic [0] offset -1" ]
    kc -C -t "$topic" -p 0 -o "s@$middle" -e -K: >"$work/out"
    lines 51 100 >"$work/want"
    same "$work/want" "$work/out"
    kc -C -t "$topic" -p 0 -o s@1 -o "e@$middle" -e -K: >"$work/out"
    lines 1 50 >"$work/want"
    same "$work/want" "$work/out"
    # The stored time is the producer's, to the millisecond.
    kc -C -t "$topic" -p 0 -e -f '%T\n' | awk -v m="$middle" \
        'NR <= 50 && $1 >= m || NR > 50 && $1 < m { exit 1 } END { if (NR != 100) exit 1 }'
}

metadata() {
    kc -L -t "$four" >"$work/out"
    cat "$work/out"
    grep -q "topic \"$four\" with 4 partitions" "$work/out"
    grep -qE 'partition 3, leader [0-9]+, replicas: [0-9]+, isrs: [0-9]+' "$work/out"
    kc -L -J -t "$four" | python3 -c 'import json, sys
seen = json.load(sys.stdin)
assert len(seen["topics"][0]["partitions"]) == 4, seen
assert seen["controllerid"] in [b["id"] for b in seen["brokers"]], seen'
    kc -L >"$work/out"
    grep -q "$four" "$work/out"
}

# consumer NAME GROUP: one more member, its records in $work/NAME, its assignments in NAME.err.
consumer() {
    kcat -b "$BOOTSTRAP" -u -X session.timeout.ms=6000 -X heartbeat.interval.ms=300 \
        -X auto.commit.interval.ms=200 -X auto.offset.reset=earliest \
        -X partition.assignment.strategy="$strategy" \
        -f '%k\n' -G "$2" "$four" >"$work/$1" 2>"$work/$1.err" &
    pids+=($!)
    member=$!
}
# owns NAME COUNT: the last assignment of the member holds COUNT partitions.
owns() {
    local line
    line=$(grep -a 'rebalanced.*assigned' "$work/$1.err" | tail -n 1)
    [ "$(grep -o '\[[0-9]*\]' <<<"$line" | wc -l)" = "$2" ]
}

groups() {
    local group=$RUN-$1 first second third topic=$four wanted
    local one=one-$1 two=two-$1
    consumer a "$group"; first=$member
    until_true 15 owns a 4
    consumer b "$group"; second=$member
    until_true 15 owns b 2
    until_true 15 owns a 2
    seq -f "$one-%g:x" 1 200 | kc -P -t "$topic" -K:
    wanted=200
    until_true 15 got_of "$one" a b
    # Each record went to one of the two, and both had some.
    [ "$(cat "$work/a" "$work/b" | grep -c "^$one-")" = 200 ]
    grep -q "^$one-" "$work/a"
    grep -q "^$one-" "$work/b"

    kill "$first"
    until_true 15 owns b 4
    consumer c "$group"; third=$member
    until_true 15 owns c 2
    until_true 15 owns b 2
    # A crash says nothing: the broker must find it out and hand the partitions on.
    kill -9 "$second"
    until_true 15 owns c 4
    seq -f "$two-%g:x" 1 200 | kc -P -t "$topic" -K:
    until_true 15 got_of "$two" c
    [ "$(grep -c "^$two-" "$work/c")" = 200 ]
    kill "$third"
}
got_of() {
    local word=$1
    shift
    [ "$(cd "$work" && cat "$@" | grep "^$word-" | sort -u | wc -l)" -ge "$wanted" ]
}

# A group continues where its last member stopped.
groups_resume() {
    local topic=$RUN-resume
    lines 1 60 | kc -P -t "$topic" -p 0 -K:
    kc -G "$RUN-resume" -K: -c 20 -X auto.offset.reset=earliest "$topic" >"$work/one"
    kc -G "$RUN-resume" -K: -c 40 -X auto.offset.reset=earliest "$topic" >"$work/two"
    cat "$work/one" "$work/two" >"$work/out"
    lines 1 60 >"$work/want"
    same "$work/want" "$work/out"
}

# A member under a fixed name that comes back in time is given its partitions again at once.
groups_static() {
    local group=$RUN-static
    consumer_static a; local first=$member
    until_true 15 owns a 4
    kill -9 "$first"
    consumer_static b
    until_true 5 owns b 4
}
consumer_static() {
    kcat -b "$BOOTSTRAP" -u -X session.timeout.ms=30000 -X group.instance.id=one \
        -f '%k\n' -G "$group" "$four" >"$work/$1" 2>"$work/$1.err" &
    pids+=($!)
    member=$!
}

# kcat cannot create a topic with partitions, so the broker is asked in its own words.
four=$RUN-four
python3 "$root/compat-tests/lib/create_topic.py" "$BOOTSTRAP" "$four" 4

check topics metadata metadata
for codec in none gzip snappy lz4 zstd; do check compression "$codec" compression "$codec"; done
for level in 0 1 all; do check acks "$level" acks "$level"; done
check idempotence "enable.idempotence" idempotence
check keys "null and empty" keys
check keys "murmur2 partitioner" partitioner
check headers "repeated and empty" headers
check offsets produce offsets_prepare
check offsets "beginning" offsets_from beginning 1
check offsets "absolute" offsets_from 40 41
check offsets "from the tail" offsets_from -10 91
check offsets "end" offsets_end
check offsets "query" offsets_query
check offsets "a record larger than the limits" offsets_large
check offsets "out of range" offsets_out_of_range
check timestamps "from and to a time" timestamps
strategy=range
check groups "join, leave, crash (range)" groups range
strategy=roundrobin
check groups "join, leave, crash (roundrobin)" groups roundrobin
check groups "resume" groups_resume
check groups "static member" groups_static
skip groups "cooperative-sticky: librdkafka 2.0 aborts on it against any broker"
finish
