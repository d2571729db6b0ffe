//! Requests about records: appending, reading, finding and deleting them.

use super::{Api, BYTES, I8, I16, I32, I64, STR, UUID, field, many, one, structs};

/// See [`super::find`].
pub(super) const RECORDS: &[Api] = &[
    Api {
        key: 0,
        name: "Produce",
        first: 3,
        last: 13,
        flexible: 9,
        fields: &[
            field("transactional_id", STR).nullable(),
            field("acks", I16),
            field("timeout_ms", I32),
            field(
                "topic_data",
                structs(&[
                    field("name", STR).until(12),
                    field("topic_id", UUID).since(13),
                    field(
                        "partition_data",
                        structs(&[field("index", I32), field("records", BYTES).nullable()]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 1,
        name: "Fetch",
        first: 4,
        last: 18,
        flexible: 12,
        fields: &[
            field("cluster_id", STR).since(12).nullable().tagged(0),
            field("replica_id", I32).until(14),
            field("replica_state", one(&[field("replica_id", I32), field("replica_epoch", I64)]))
                .since(15)
                .tagged(1),
            field("max_wait_ms", I32),
            field("min_bytes", I32),
            field("max_bytes", I32),
            field("isolation_level", I8),
            field("session_id", I32).since(7),
            field("session_epoch", I32).since(7),
            field(
                "topics",
                structs(&[
                    field("topic", STR).until(12),
                    field("topic_id", UUID).since(13),
                    field(
                        "partitions",
                        structs(&[
                            field("partition", I32),
                            field("current_leader_epoch", I32).since(9),
                            field("fetch_offset", I64),
                            field("last_fetched_epoch", I32).since(12),
                            field("log_start_offset", I64).since(5),
                            field("partition_max_bytes", I32),
                            field("replica_directory_id", UUID).since(17).tagged(0),
                            field("high_watermark", I64).since(18).tagged(1),
                        ]),
                    ),
                ]),
            ),
            field(
                "forgotten_topics_data",
                structs(&[
                    field("topic", STR).until(12),
                    field("topic_id", UUID).since(13),
                    field("partitions", many(I32)),
                ]),
            )
            .since(7),
            field("rack_id", STR).since(11),
        ],
    },
    Api {
        key: 2,
        name: "ListOffsets",
        first: 1,
        last: 10,
        flexible: 6,
        fields: &[
            field("replica_id", I32),
            field("isolation_level", I8).since(2),
            field(
                "topics",
                structs(&[
                    field("name", STR),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field("current_leader_epoch", I32).since(4),
                            field("timestamp", I64),
                        ]),
                    ),
                ]),
            ),
            field("timeout_ms", I32).since(10),
        ],
    },
    Api {
        key: 21,
        name: "DeleteRecords",
        first: 0,
        last: 2,
        flexible: 2,
        fields: &[
            field(
                "topics",
                structs(&[
                    field("name", STR),
                    field(
                        "partitions",
                        structs(&[field("partition_index", I32), field("offset", I64)]),
                    ),
                ]),
            ),
            field("timeout_ms", I32),
        ],
    },
    Api {
        key: 23,
        name: "OffsetForLeaderEpoch",
        first: 2,
        last: 4,
        flexible: 4,
        fields: &[
            field("replica_id", I32).since(3),
            field(
                "topics",
                structs(&[
                    field("topic", STR),
                    field(
                        "partitions",
                        structs(&[
                            field("partition", I32),
                            field("current_leader_epoch", I32),
                            field("leader_epoch", I32),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 61,
        name: "DescribeProducers",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field(
            "topics",
            structs(&[field("name", STR), field("partition_indexes", many(I32))]),
        )],
    },
];
