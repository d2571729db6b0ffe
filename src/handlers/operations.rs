//! What a client may do, as bits by the number of each operation (KIP-430). Without an authorizer
//! everything that a resource knows is allowed.

/// The field's value when it was not asked for.
pub(super) const NOT_ASKED: i32 = i32::MIN;

const READ: i32 = 1 << 3;
const WRITE: i32 = 1 << 4;
const CREATE: i32 = 1 << 5;
const DELETE: i32 = 1 << 6;
const ALTER: i32 = 1 << 7;
const DESCRIBE: i32 = 1 << 8;
const CLUSTER_ACTION: i32 = 1 << 9;
const DESCRIBE_CONFIGS: i32 = 1 << 10;
const ALTER_CONFIGS: i32 = 1 << 11;
const IDEMPOTENT_WRITE: i32 = 1 << 12;

/// With a topic.
pub(super) fn of_topic(asked: bool) -> i32 {
    let all = READ | WRITE | CREATE | DELETE | ALTER | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS;
    if asked { all } else { NOT_ASKED }
}

/// With a group.
pub(super) fn of_group(asked: bool) -> i32 {
    let all = READ | DELETE | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS;
    if asked { all } else { NOT_ASKED }
}

/// With the cluster.
pub(super) fn of_cluster(asked: bool) -> i32 {
    let all = CREATE
        | ALTER
        | DESCRIBE
        | CLUSTER_ACTION
        | DESCRIBE_CONFIGS
        | ALTER_CONFIGS
        | IDEMPOTENT_WRITE;
    if asked { all } else { NOT_ASKED }
}
