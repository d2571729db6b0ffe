//! Requests of share groups (KIP-932): members, records, and the state behind them.

use super::{Api, BOOL, I8, I16, I32, I64, STR, UUID, field, many, structs};

/// See [`super::find`].
pub(super) const SHARES: &[Api] = &[
    Api {
        key: 76,
        name: "ShareGroupHeartbeat",
        first: 1,
        last: 1,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field("member_id", STR),
            field("member_epoch", I32),
            field("rack_id", STR).nullable(),
            field("subscribed_topic_names", many(STR)).nullable(),
        ],
    },
    Api {
        key: 77,
        name: "ShareGroupDescribe",
        first: 1,
        last: 1,
        flexible: 0,
        fields: &[field("group_ids", many(STR)), field("include_authorized_operations", BOOL)],
    },
    Api {
        key: 78,
        name: "ShareFetch",
        first: 1,
        last: 1,
        flexible: 0,
        fields: &[
            field("group_id", STR).nullable(),
            field("member_id", STR).nullable(),
            field("share_session_epoch", I32),
            field("max_wait_ms", I32),
            field("min_bytes", I32),
            field("max_bytes", I32),
            field("max_records", I32),
            field("batch_size", I32),
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field(
                                "acknowledgement_batches",
                                structs(&[
                                    field("first_offset", I64),
                                    field("last_offset", I64),
                                    field("acknowledge_types", many(I8)),
                                ]),
                            ),
                        ]),
                    ),
                ]),
            ),
            field(
                "forgotten_topics_data",
                structs(&[field("topic_id", UUID), field("partitions", many(I32))]),
            ),
        ],
    },
    Api {
        key: 79,
        name: "ShareAcknowledge",
        first: 1,
        last: 1,
        flexible: 0,
        fields: &[
            field("group_id", STR).nullable(),
            field("member_id", STR).nullable(),
            field("share_session_epoch", I32),
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field(
                                "acknowledgement_batches",
                                structs(&[
                                    field("first_offset", I64),
                                    field("last_offset", I64),
                                    field("acknowledge_types", many(I8)),
                                ]),
                            ),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 83,
        name: "InitializeShareGroupState",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID),
                    field(
                        "partitions",
                        structs(&[
                            field("partition", I32),
                            field("state_epoch", I32),
                            field("start_offset", I64),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 84,
        name: "ReadShareGroupState",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID),
                    field(
                        "partitions",
                        structs(&[field("partition", I32), field("leader_epoch", I32)]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 85,
        name: "WriteShareGroupState",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID),
                    field(
                        "partitions",
                        structs(&[
                            field("partition", I32),
                            field("state_epoch", I32),
                            field("leader_epoch", I32),
                            field("start_offset", I64),
                            field(
                                "state_batches",
                                structs(&[
                                    field("first_offset", I64),
                                    field("last_offset", I64),
                                    field("delivery_state", I8),
                                    field("delivery_count", I16),
                                ]),
                            ),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 86,
        name: "DeleteShareGroupState",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID),
                    field("partitions", structs(&[field("partition", I32)])),
                ]),
            ),
        ],
    },
    Api {
        key: 87,
        name: "ReadShareGroupStateSummary",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID),
                    field(
                        "partitions",
                        structs(&[field("partition", I32), field("leader_epoch", I32)]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 90,
        name: "DescribeShareGroupOffsets",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field(
            "groups",
            structs(&[
                field("group_id", STR),
                field(
                    "topics",
                    structs(&[field("topic_name", STR), field("partitions", many(I32))]),
                )
                .nullable(),
            ]),
        )],
    },
    Api {
        key: 91,
        name: "AlterShareGroupOffsets",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("group_id", STR),
            field(
                "topics",
                structs(&[
                    field("topic_name", STR),
                    field(
                        "partitions",
                        structs(&[field("partition_index", I32), field("start_offset", I64)]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 92,
        name: "DeleteShareGroupOffsets",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field("group_id", STR), field("topics", structs(&[field("topic_name", STR)]))],
    },
];
