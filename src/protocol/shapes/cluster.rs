//! Requests about the cluster itself: versions, brokers, controllers, and KRaft's own.

use super::{Api, BOOL, I8, I16, I32, I64, STR, U16, UUID, field, many, one, structs};

/// See [`super::find`].
pub(super) const CLUSTER: &[Api] = &[
    Api {
        key: 18,
        name: "ApiVersions",
        first: 0,
        last: 4,
        flexible: 3,
        fields: &[
            field("client_software_name", STR).since(3),
            field("client_software_version", STR).since(3),
        ],
    },
    Api {
        key: 52,
        name: "Vote",
        first: 0,
        last: 2,
        flexible: 0,
        fields: &[
            field("cluster_id", STR).nullable(),
            field("voter_id", I32).since(1),
            field(
                "topics",
                structs(&[
                    field("topic_name", STR),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field("replica_epoch", I32),
                            field("replica_id", I32),
                            field("replica_directory_id", UUID).since(1),
                            field("voter_directory_id", UUID).since(1),
                            field("last_offset_epoch", I32),
                            field("last_offset", I64),
                            field("pre_vote", BOOL).since(2),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 53,
        name: "BeginQuorumEpoch",
        first: 0,
        last: 1,
        flexible: 1,
        fields: &[
            field("cluster_id", STR).nullable(),
            field("voter_id", I32).since(1),
            field(
                "topics",
                structs(&[
                    field("topic_name", STR),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field("voter_directory_id", UUID).since(1),
                            field("leader_id", I32),
                            field("leader_epoch", I32),
                        ]),
                    ),
                ]),
            ),
            field(
                "leader_endpoints",
                structs(&[field("name", STR), field("host", STR), field("port", U16)]),
            )
            .since(1),
        ],
    },
    Api {
        key: 54,
        name: "EndQuorumEpoch",
        first: 0,
        last: 1,
        flexible: 1,
        fields: &[
            field("cluster_id", STR).nullable(),
            field(
                "topics",
                structs(&[
                    field("topic_name", STR),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field("leader_id", I32),
                            field("leader_epoch", I32),
                            field("preferred_successors", many(I32)).until(0),
                            field(
                                "preferred_candidates",
                                structs(&[
                                    field("candidate_id", I32),
                                    field("candidate_directory_id", UUID),
                                ]),
                            )
                            .since(1),
                        ]),
                    ),
                ]),
            ),
            field(
                "leader_endpoints",
                structs(&[field("name", STR), field("host", STR), field("port", U16)]),
            )
            .since(1),
        ],
    },
    Api {
        key: 55,
        name: "DescribeQuorum",
        first: 0,
        last: 2,
        flexible: 0,
        fields: &[field(
            "topics",
            structs(&[
                field("topic_name", STR),
                field("partitions", structs(&[field("partition_index", I32)])),
            ]),
        )],
    },
    Api {
        key: 56,
        name: "AlterPartition",
        first: 2,
        last: 3,
        flexible: 0,
        fields: &[
            field("broker_id", I32),
            field("broker_epoch", I64),
            field(
                "topics",
                structs(&[
                    field("topic_id", UUID),
                    field(
                        "partitions",
                        structs(&[
                            field("partition_index", I32),
                            field("leader_epoch", I32),
                            field("new_isr", many(I32)).until(2),
                            field(
                                "new_isr_with_epochs",
                                structs(&[field("broker_id", I32), field("broker_epoch", I64)]),
                            )
                            .since(3),
                            field("leader_recovery_state", I8),
                            field("partition_epoch", I32),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 57,
        name: "UpdateFeatures",
        first: 0,
        last: 2,
        flexible: 0,
        fields: &[
            field("timeout_ms", I32),
            field(
                "feature_updates",
                structs(&[
                    field("feature", STR),
                    field("max_version_level", I16),
                    field("allow_downgrade", BOOL).until(0),
                    field("upgrade_type", I8).since(1),
                ]),
            ),
            field("validate_only", BOOL).since(1),
        ],
    },
    Api {
        key: 59,
        name: "FetchSnapshot",
        first: 0,
        last: 1,
        flexible: 0,
        fields: &[
            field("cluster_id", STR).nullable().tagged(0),
            field("replica_id", I32),
            field("max_bytes", I32),
            field(
                "topics",
                structs(&[
                    field("name", STR),
                    field(
                        "partitions",
                        structs(&[
                            field("partition", I32),
                            field("current_leader_epoch", I32),
                            field(
                                "snapshot_id",
                                one(&[field("end_offset", I64), field("epoch", I32)]),
                            ),
                            field("position", I64),
                            field("replica_directory_id", UUID).since(1).tagged(0),
                        ]),
                    ),
                ]),
            ),
        ],
    },
    Api {
        key: 60,
        name: "DescribeCluster",
        first: 0,
        last: 2,
        flexible: 0,
        fields: &[
            field("include_cluster_authorized_operations", BOOL),
            field("endpoint_type", I8).since(1),
            field("include_fenced_brokers", BOOL).since(2),
        ],
    },
    Api {
        key: 62,
        name: "BrokerRegistration",
        first: 0,
        last: 4,
        flexible: 0,
        fields: &[
            field("broker_id", I32),
            field("cluster_id", STR),
            field("incarnation_id", UUID),
            field(
                "listeners",
                structs(&[
                    field("name", STR),
                    field("host", STR),
                    field("port", U16),
                    field("security_protocol", I16),
                ]),
            ),
            field(
                "features",
                structs(&[
                    field("name", STR),
                    field("min_supported_version", I16),
                    field("max_supported_version", I16),
                ]),
            ),
            field("rack", STR).nullable(),
            field("is_migrating_zk_broker", BOOL).since(1),
            field("log_dirs", many(UUID)).since(2),
            field("previous_broker_epoch", I64).since(3),
        ],
    },
    Api {
        key: 63,
        name: "BrokerHeartbeat",
        first: 0,
        last: 1,
        flexible: 0,
        fields: &[
            field("broker_id", I32),
            field("broker_epoch", I64),
            field("current_metadata_offset", I64),
            field("want_fence", BOOL),
            field("want_shut_down", BOOL),
            field("offline_log_dirs", many(UUID)).since(1).tagged(0),
        ],
    },
    Api {
        key: 64,
        name: "UnregisterBroker",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field("broker_id", I32)],
    },
    Api {
        key: 70,
        name: "ControllerRegistration",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("controller_id", I32),
            field("incarnation_id", UUID),
            field("zk_migration_ready", BOOL),
            field(
                "listeners",
                structs(&[
                    field("name", STR),
                    field("host", STR),
                    field("port", U16),
                    field("security_protocol", I16),
                ]),
            ),
            field(
                "features",
                structs(&[
                    field("name", STR),
                    field("min_supported_version", I16),
                    field("max_supported_version", I16),
                ]),
            ),
        ],
    },
    Api {
        key: 80,
        name: "AddRaftVoter",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("cluster_id", STR).nullable(),
            field("timeout_ms", I32),
            field("voter_id", I32),
            field("voter_directory_id", UUID),
            field(
                "listeners",
                structs(&[field("name", STR), field("host", STR), field("port", U16)]),
            ),
        ],
    },
    Api {
        key: 81,
        name: "RemoveRaftVoter",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("cluster_id", STR).nullable(),
            field("voter_id", I32),
            field("voter_directory_id", UUID),
        ],
    },
    Api {
        key: 82,
        name: "UpdateRaftVoter",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("cluster_id", STR).nullable(),
            field("current_leader_epoch", I32),
            field("voter_id", I32),
            field("voter_directory_id", UUID),
            field(
                "listeners",
                structs(&[field("name", STR), field("host", STR), field("port", U16)]),
            ),
            field(
                "k_raft_version_feature",
                one(&[field("min_supported_version", I16), field("max_supported_version", I16)]),
            ),
        ],
    },
];
