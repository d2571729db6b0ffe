//! Requests about configuration, quotas and what clients report.

use super::{Api, BOOL, BYTES, F64, I8, I32, STR, UUID, field, many, structs};

/// See [`super::find`].
pub(super) const SETTINGS: &[Api] = &[
    Api {
        key: 32,
        name: "DescribeConfigs",
        first: 1,
        last: 4,
        flexible: 4,
        fields: &[
            field(
                "resources",
                structs(&[
                    field("resource_type", I8),
                    field("resource_name", STR),
                    field("configuration_keys", many(STR)).nullable(),
                ]),
            ),
            field("include_synonyms", BOOL),
            field("include_documentation", BOOL).since(3),
        ],
    },
    Api {
        key: 33,
        name: "AlterConfigs",
        first: 0,
        last: 2,
        flexible: 2,
        fields: &[
            field(
                "resources",
                structs(&[
                    field("resource_type", I8),
                    field("resource_name", STR),
                    field(
                        "configs",
                        structs(&[field("name", STR), field("value", STR).nullable()]),
                    ),
                ]),
            ),
            field("validate_only", BOOL),
        ],
    },
    Api {
        key: 44,
        name: "IncrementalAlterConfigs",
        first: 0,
        last: 1,
        flexible: 1,
        fields: &[
            field(
                "resources",
                structs(&[
                    field("resource_type", I8),
                    field("resource_name", STR),
                    field(
                        "configs",
                        structs(&[
                            field("name", STR),
                            field("config_operation", I8),
                            field("value", STR).nullable(),
                        ]),
                    ),
                ]),
            ),
            field("validate_only", BOOL),
        ],
    },
    Api {
        key: 48,
        name: "DescribeClientQuotas",
        first: 0,
        last: 1,
        flexible: 1,
        fields: &[
            field(
                "components",
                structs(&[
                    field("entity_type", STR),
                    field("match_type", I8),
                    field("match", STR).nullable(),
                ]),
            ),
            field("strict", BOOL),
        ],
    },
    Api {
        key: 49,
        name: "AlterClientQuotas",
        first: 0,
        last: 1,
        flexible: 1,
        fields: &[
            field(
                "entries",
                structs(&[
                    field(
                        "entity",
                        structs(&[field("entity_type", STR), field("entity_name", STR).nullable()]),
                    ),
                    field(
                        "ops",
                        structs(&[field("key", STR), field("value", F64), field("remove", BOOL)]),
                    ),
                ]),
            ),
            field("validate_only", BOOL),
        ],
    },
    Api {
        key: 71,
        name: "GetTelemetrySubscriptions",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field("client_instance_id", UUID)],
    },
    Api {
        key: 72,
        name: "PushTelemetry",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("client_instance_id", UUID),
            field("subscription_id", I32),
            field("terminating", BOOL),
            field("compression_type", I8),
            field("metrics", BYTES),
        ],
    },
    Api {
        key: 74,
        name: "ListConfigResources",
        first: 0,
        last: 1,
        flexible: 0,
        fields: &[field("resource_types", many(I8)).since(1)],
    },
];
