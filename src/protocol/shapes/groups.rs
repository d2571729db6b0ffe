//! Requests of consumer groups: classic ones, those of KIP-848 and those of Streams (KIP-1071).

use super::{Api, BOOL, BYTES, I8, I16, I32, I64, STR, U16, UUID, field, many, one, structs};

/// See [`super::find`].
pub(super) const GROUPS: &[Api] = &[
    Api {
        key: 8,
        name: "OffsetCommit",
        first: 2,
        last: 10,
        flexible: 8,
        fields: &[
            field("group_id", STR),
            field("generation_id_or_member_epoch", I32),
            field("member_id", STR),
            field("group_instance_id", STR).since(7).nullable(),
            field("retention_time_ms", I64).until(4),
            field(
                "topics",
                structs(&[
                    field("name", STR).until(9),
                    field("topic_id", UUID).since(10),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field("committed_offset", I64),
                            field("committed_leader_epoch", I32).since(6),
                            field("committed_metadata", STR).nullable(),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 9,
        name: "OffsetFetch",
        first: 1,
        last: 10,
        flexible: 6,
        fields: &[
            field("group_id", STR).until(7),
            field("topics", structs(&[field("name", STR), field("partition_indexes", many(I32))]))
                .until(7)
                .nullable_since(2),
            field(
                "groups",
                structs(&[
                    field("group_id", STR),
                    field("member_id", STR).since(9).nullable(),
                    field("member_epoch", I32).since(9),
                    field(
                        "topics",
                        structs(&[
                            field("name", STR).until(9),
                            field("topic_id", UUID).since(10),
                            field("partition_indexes", many(I32)),
                        ]),
                    )
                    .nullable(),
                ]),
            )
            .since(8),
            field("require_stable", BOOL).since(7),
        ],
    },
    Api {
        key: 10,
        name: "FindCoordinator",
        first: 0,
        last: 6,
        flexible: 3,
        fields: &[
            field("key", STR).until(3),
            field("key_type", I8).since(1),
            field("coordinator_keys", many(STR)).since(4),
        ],
    },
    Api {
        key: 11,
        name: "JoinGroup",
        first: 0,
        last: 9,
        flexible: 6,
        fields: &[
            field("group_id", STR),
            field("session_timeout_ms", I32),
            field("rebalance_timeout_ms", I32).since(1),
            field("member_id", STR),
            field("group_instance_id", STR).since(5).nullable(),
            field("protocol_type", STR),
            field("protocols", structs(&[field("name", STR), field("metadata", BYTES)])),
            field("reason", STR).since(8).nullable(),
        ],
    },
    Api {
        key: 12,
        name: "Heartbeat",
        first: 0,
        last: 4,
        flexible: 4,
        fields: &[
            field("group_id", STR),
            field("generation_id", I32),
            field("member_id", STR),
            field("group_instance_id", STR).since(3).nullable(),
        ],
    },
    Api {
        key: 13,
        name: "LeaveGroup",
        first: 0,
        last: 5,
        flexible: 4,
        fields: &[
            field("group_id", STR),
            field("member_id", STR).until(2),
            field(
                "members",
                structs(&[
                    field("member_id", STR),
                    field("group_instance_id", STR).nullable(),
                    field("reason", STR).since(5).nullable(),
                ]),
            )
            .since(3),
        ],
    },
    Api {
        key: 14,
        name: "SyncGroup",
        first: 0,
        last: 5,
        flexible: 4,
        fields: &[
            field("group_id", STR),
            field("generation_id", I32),
            field("member_id", STR),
            field("group_instance_id", STR).since(3).nullable(),
            field("protocol_type", STR).since(5).nullable(),
            field("protocol_name", STR).since(5).nullable(),
            field("assignments", structs(&[field("member_id", STR), field("assignment", BYTES)])),
        ],
    },
    Api {
        key: 15,
        name: "DescribeGroups",
        first: 0,
        last: 6,
        flexible: 5,
        fields: &[
            field("groups", many(STR)),
            field("include_authorized_operations", BOOL).since(3),
        ],
    },
    Api {
        key: 16,
        name: "ListGroups",
        first: 0,
        last: 5,
        flexible: 3,
        fields: &[
            field("states_filter", many(STR)).since(4),
            field("types_filter", many(STR)).since(5),
        ],
    },
    Api {
        key: 42,
        name: "DeleteGroups",
        first: 0,
        last: 2,
        flexible: 2,
        fields: &[field("groups_names", many(STR))],
    },
    Api {
        key: 47,
        name: "OffsetDelete",
        first: 0,
        last: 0,
        flexible: Api::NEVER,
        fields: &[
            field("group_id", STR),
            field(
                "topics",
                structs(&[
                    field("name", STR),
                    field("partitions", structs(&[field("partition_index", I32)])),
                ]),
            ),
        ],
    },
    Api {
        key: 68,
        name: "ConsumerGroupHeartbeat",
        first: 0,
        last: 1,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field("member_id", STR),
            field("member_epoch", I32),
            field("instance_id", STR).nullable(),
            field("rack_id", STR).nullable(),
            field("rebalance_timeout_ms", I32),
            field("subscribed_topic_names", many(STR)).nullable(),
            field("subscribed_topic_regex", STR).since(1).nullable(),
            field("server_assignor", STR).nullable(),
            field(
                "topic_partitions",
                structs(&[field("topic_id", UUID), field("partitions", many(I32))]),
            )
            .nullable(),
        ],
    },
    Api {
        key: 69,
        name: "ConsumerGroupDescribe",
        first: 0,
        last: 1,
        flexible: 0,
        fields: &[field("group_ids", many(STR)), field("include_authorized_operations", BOOL)],
    },
    Api {
        key: 88,
        name: "StreamsGroupHeartbeat",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field("member_id", STR),
            field("member_epoch", I32),
            field("endpoint_information_epoch", I32),
            field("instance_id", STR).nullable(),
            field("rack_id", STR).nullable(),
            field("rebalance_timeout_ms", I32),
            field(
                "topology",
                one(&[
                    field("epoch", I32),
                    field(
                        "subtopologies",
                        structs(&[
                            field("subtopology_id", STR),
                            field("source_topics", many(STR)),
                            field("source_topic_regex", many(STR)),
                            field(
                                "state_changelog_topics",
                                structs(&[
                                    field("name", STR),
                                    field("partitions", I32),
                                    field("replication_factor", I16),
                                    field(
                                        "topic_configs",
                                        structs(&[field("key", STR), field("value", STR)]),
                                    ),
                                ]),
                            ),
                            field("repartition_sink_topics", many(STR)),
                            field(
                                "repartition_source_topics",
                                structs(&[
                                    field("name", STR),
                                    field("partitions", I32),
                                    field("replication_factor", I16),
                                    field(
                                        "topic_configs",
                                        structs(&[field("key", STR), field("value", STR)]),
                                    ),
                                ]),
                            ),
                            field(
                                "copartition_groups",
                                structs(&[
                                    field("source_topics", many(I16)),
                                    field("source_topic_regex", many(I16)),
                                    field("repartition_source_topics", many(I16)),
                                ]),
                            ),
                        ]),
                    ),
                ]),
            )
            .nullable(),
            field(
                "active_tasks",
                structs(&[field("subtopology_id", STR), field("partitions", many(I32))]),
            )
            .nullable(),
            field(
                "standby_tasks",
                structs(&[field("subtopology_id", STR), field("partitions", many(I32))]),
            )
            .nullable(),
            field(
                "warmup_tasks",
                structs(&[field("subtopology_id", STR), field("partitions", many(I32))]),
            )
            .nullable(),
            field("process_id", STR).nullable(),
            field("user_endpoint", one(&[field("host", STR), field("port", U16)])).nullable(),
            field("client_tags", structs(&[field("key", STR), field("value", STR)])).nullable(),
            field(
                "task_offsets",
                structs(&[
                    field("subtopology_id", STR),
                    field("partition", I32),
                    field("offset", I64),
                ]),
            )
            .nullable(),
            field(
                "task_end_offsets",
                structs(&[
                    field("subtopology_id", STR),
                    field("partition", I32),
                    field("offset", I64),
                ]),
            )
            .nullable(),
            field("shutdown_application", BOOL),
        ],
    },
    Api {
        key: 89,
        name: "StreamsGroupDescribe",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field("group_ids", many(STR)), field("include_authorized_operations", BOOL)],
    },
];
