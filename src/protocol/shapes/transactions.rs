//! Requests of transactions and idempotent producers (KIP-98).

use super::{Api, BOOL, I16, I32, I64, STR, field, many, structs};

/// See [`super::find`].
pub(super) const TRANSACTIONS: &[Api] = &[
    Api {
        key: 22,
        name: "InitProducerId",
        first: 0,
        last: 6,
        flexible: 2,
        fields: &[
            field("transactional_id", STR).nullable(),
            field("transaction_timeout_ms", I32),
            field("producer_id", I64).since(3),
            field("producer_epoch", I16).since(3),
            field("enable2_pc", BOOL).since(6),
            field("keep_prepared_txn", BOOL).since(6),
        ],
    },
    Api {
        key: 24,
        name: "AddPartitionsToTxn",
        first: 0,
        last: 5,
        flexible: 3,
        fields: &[
            field(
                "transactions",
                structs(&[
                    field("transactional_id", STR),
                    field("producer_id", I64),
                    field("producer_epoch", I16),
                    field("verify_only", BOOL),
                    field("topics", structs(&[field("name", STR), field("partitions", many(I32))])),
                ]),
            )
            .since(4),
            field("v3_and_below_transactional_id", STR).until(3),
            field("v3_and_below_producer_id", I64).until(3),
            field("v3_and_below_producer_epoch", I16).until(3),
            field(
                "v3_and_below_topics",
                structs(&[field("name", STR), field("partitions", many(I32))]),
            )
            .until(3),
        ],
    },
    Api {
        key: 25,
        name: "AddOffsetsToTxn",
        first: 0,
        last: 4,
        flexible: 3,
        fields: &[
            field("transactional_id", STR),
            field("producer_id", I64),
            field("producer_epoch", I16),
            field("group_id", STR),
        ],
    },
    Api {
        key: 26,
        name: "EndTxn",
        first: 0,
        last: 5,
        flexible: 3,
        fields: &[
            field("transactional_id", STR),
            field("producer_id", I64),
            field("producer_epoch", I16),
            field("committed", BOOL),
        ],
    },
    Api {
        key: 27,
        name: "WriteTxnMarkers",
        first: 1,
        last: 1,
        flexible: 1,
        fields: &[field(
            "markers",
            structs(&[
                field("producer_id", I64),
                field("producer_epoch", I16),
                field("transaction_result", BOOL),
                field(
                    "topics",
                    structs(&[field("name", STR), field("partition_indexes", many(I32))]),
                ),
                field("coordinator_epoch", I32),
            ]),
        )],
    },
    Api {
        key: 28,
        name: "TxnOffsetCommit",
        first: 0,
        last: 5,
        flexible: 3,
        fields: &[
            field("transactional_id", STR),
            field("group_id", STR),
            field("producer_id", I64),
            field("producer_epoch", I16),
            field("generation_id", I32).since(3),
            field("member_id", STR).since(3),
            field("group_instance_id", STR).since(3).nullable(),
            field(
                "topics",
                structs(&[
                    field("name", STR),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field("committed_offset", I64),
                            field("committed_leader_epoch", I32).since(2),
                            field("committed_metadata", STR).nullable(),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 65,
        name: "DescribeTransactions",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field("transactional_ids", many(STR))],
    },
    Api {
        key: 66,
        name: "ListTransactions",
        first: 0,
        last: 2,
        flexible: 0,
        fields: &[
            field("state_filters", many(STR)),
            field("producer_id_filters", many(I64)),
            field("duration_filter", I64).since(1),
            field("transactional_id_pattern", STR).since(2).nullable(),
        ],
    },
    Api {
        key: 67,
        name: "AllocateProducerIds",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field("broker_id", I32), field("broker_epoch", I64)],
    },
];
