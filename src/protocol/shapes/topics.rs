//! Requests about topics: what there is, making it, changing it, placing it.

use super::{Api, BOOL, I8, I16, I32, I64, STR, UUID, field, many, one, structs};

/// See [`super::find`].
pub(super) const TOPICS: &[Api] = &[
    Api {
        key: 3,
        name: "Metadata",
        first: 0,
        last: 13,
        flexible: 9,
        fields: &[
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID).since(10),
                    field("name", STR).nullable_since(10),
                ]),
            )
            .nullable_since(1),
            field("allow_auto_topic_creation", BOOL).since(4),
            field("include_cluster_authorized_operations", BOOL).since(8).until(10),
            field("include_topic_authorized_operations", BOOL).since(8),
        ],
    },
    Api {
        key: 19,
        name: "CreateTopics",
        first: 2,
        last: 7,
        flexible: 5,
        fields: &[
            field(
                "topics",
                structs(&[
                    field("name", STR),
                    field("num_partitions", I32),
                    field("replication_factor", I16),
                    field(
                        "assignments",
                        structs(&[field("partition_index", I32), field("broker_ids", many(I32))]),
                    ),
                    field(
                        "configs",
                        structs(&[field("name", STR), field("value", STR).nullable()]),
                    ),
                ]),
            ),
            field("timeout_ms", I32),
            field("validate_only", BOOL),
        ],
    },
    Api {
        key: 20,
        name: "DeleteTopics",
        first: 1,
        last: 6,
        flexible: 4,
        fields: &[
            field("topics", structs(&[field("name", STR).nullable(), field("topic_id", UUID)]))
                .since(6),
            field("topic_names", many(STR)).until(5),
            field("timeout_ms", I32),
        ],
    },
    Api {
        key: 34,
        name: "AlterReplicaLogDirs",
        first: 1,
        last: 2,
        flexible: 2,
        fields: &[field(
            "dirs",
            structs(&[
                field("path", STR),
                field("topics", structs(&[field("name", STR), field("partitions", many(I32))])),
            ]),
        )],
    },
    Api {
        key: 35,
        name: "DescribeLogDirs",
        first: 1,
        last: 4,
        flexible: 2,
        fields: &[field("topics", structs(&[field("topic", STR), field("partitions", many(I32))]))
            .nullable()],
    },
    Api {
        key: 37,
        name: "CreatePartitions",
        first: 0,
        last: 3,
        flexible: 2,
        fields: &[
            field(
                "topics",
                structs(&[
                    field("name", STR),
                    field("count", I32),
                    field("assignments", structs(&[field("broker_ids", many(I32))])).nullable(),
                ]),
            ),
            field("timeout_ms", I32),
            field("validate_only", BOOL),
        ],
    },
    Api {
        key: 43,
        name: "ElectLeaders",
        first: 0,
        last: 2,
        flexible: 2,
        fields: &[
            field("election_type", I8).since(1),
            field(
                "topic_partitions",
                structs(&[field("topic", STR), field("partitions", many(I32))]),
            )
            .nullable(),
            field("timeout_ms", I32),
        ],
    },
    Api {
        key: 45,
        name: "AlterPartitionReassignments",
        first: 0,
        last: 1,
        flexible: 0,
        fields: &[
            field("timeout_ms", I32),
            field("allow_replication_factor_change", BOOL).since(1),
            field(
                "topics",
                structs(&[
                    field("name", STR),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field("replicas", many(I32)).nullable(),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 46,
        name: "ListPartitionReassignments",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("timeout_ms", I32),
            field("topics", structs(&[field("name", STR), field("partition_indexes", many(I32))]))
                .nullable(),
        ],
    },
    Api {
        key: 73,
        name: "AssignReplicasToDirs",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("broker_id", I32),
            field("broker_epoch", I64),
            field(
                "directories",
                structs(&[
                    field("id", UUID),
                    field(
                        "topics",
                        structs(&[
                            field("topic_id", UUID),
                            field("partitions", structs(&[field("partition_index", I32)])),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 75,
        name: "DescribeTopicPartitions",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("topics", structs(&[field("name", STR)])),
            field("response_partition_limit", I32),
            field("cursor", one(&[field("topic_name", STR), field("partition_index", I32)]))
                .nullable(),
        ],
    },
];
