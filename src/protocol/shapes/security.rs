//! Requests about who a client is and what it may do.

use super::{Api, BYTES, I8, I32, I64, STR, field, structs};

/// See [`super::find`].
pub(super) const SECURITY: &[Api] = &[
    Api {
        key: 17,
        name: "SaslHandshake",
        first: 0,
        last: 1,
        flexible: Api::NEVER,
        fields: &[field("mechanism", STR)],
    },
    Api {
        key: 29,
        name: "DescribeAcls",
        first: 1,
        last: 3,
        flexible: 2,
        fields: &[
            field("resource_type_filter", I8),
            field("resource_name_filter", STR).nullable(),
            field("pattern_type_filter", I8),
            field("principal_filter", STR).nullable(),
            field("host_filter", STR).nullable(),
            field("operation", I8),
            field("permission_type", I8),
        ],
    },
    Api {
        key: 30,
        name: "CreateAcls",
        first: 1,
        last: 3,
        flexible: 2,
        fields: &[field(
            "creations",
            structs(&[
                field("resource_type", I8),
                field("resource_name", STR),
                field("resource_pattern_type", I8),
                field("principal", STR),
                field("host", STR),
                field("operation", I8),
                field("permission_type", I8),
            ]),
        )],
    },
    Api {
        key: 31,
        name: "DeleteAcls",
        first: 1,
        last: 3,
        flexible: 2,
        fields: &[field(
            "filters",
            structs(&[
                field("resource_type_filter", I8),
                field("resource_name_filter", STR).nullable(),
                field("pattern_type_filter", I8),
                field("principal_filter", STR).nullable(),
                field("host_filter", STR).nullable(),
                field("operation", I8),
                field("permission_type", I8),
            ]),
        )],
    },
    Api {
        key: 36,
        name: "SaslAuthenticate",
        first: 0,
        last: 2,
        flexible: 2,
        fields: &[field("auth_bytes", BYTES)],
    },
    Api {
        key: 38,
        name: "CreateDelegationToken",
        first: 1,
        last: 3,
        flexible: 2,
        fields: &[
            field("owner_principal_type", STR).since(3).nullable(),
            field("owner_principal_name", STR).since(3).nullable(),
            field(
                "renewers",
                structs(&[field("principal_type", STR), field("principal_name", STR)]),
            ),
            field("max_lifetime_ms", I64),
        ],
    },
    Api {
        key: 39,
        name: "RenewDelegationToken",
        first: 1,
        last: 2,
        flexible: 2,
        fields: &[field("hmac", BYTES), field("renew_period_ms", I64)],
    },
    Api {
        key: 40,
        name: "ExpireDelegationToken",
        first: 1,
        last: 2,
        flexible: 2,
        fields: &[field("hmac", BYTES), field("expiry_time_period_ms", I64)],
    },
    Api {
        key: 41,
        name: "DescribeDelegationToken",
        first: 1,
        last: 3,
        flexible: 2,
        fields: &[field(
            "owners",
            structs(&[field("principal_type", STR), field("principal_name", STR)]),
        )
        .nullable()],
    },
    Api {
        key: 50,
        name: "DescribeUserScramCredentials",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[field("users", structs(&[field("name", STR)])).nullable()],
    },
    Api {
        key: 51,
        name: "AlterUserScramCredentials",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("deletions", structs(&[field("name", STR), field("mechanism", I8)])),
            field(
                "upsertions",
                structs(&[
                    field("name", STR),
                    field("mechanism", I8),
                    field("iterations", I32),
                    field("salt", BYTES),
                    field("salted_password", BYTES),
                ]),
            ),
        ],
    },
    Api {
        key: 58,
        name: "Envelope",
        first: 0,
        last: 0,
        flexible: 0,
        fields: &[
            field("request_data", BYTES),
            field("request_principal", BYTES).nullable(),
            field("client_host_address", BYTES),
        ],
    },
];
