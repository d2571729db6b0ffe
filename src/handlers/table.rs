//! Which APIs and versions are offered: Kafka 4.1's, capped by what the codec encodes. This is
//! what ApiVersions answers; nothing else decides it.

use kafka_protocol::messages::ApiKey;
use std::ops::RangeInclusive;

/// One API.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    pub(crate) key: ApiKey,
    /// What is served.
    pub(crate) versions: RangeInclusive<i16>,
    /// The lowest version that ApiVersions names.
    pub(crate) advertised_from: i16,
}

const fn api(key: ApiKey, first: i16, last: i16) -> Api {
    Api { key, versions: first..=last, advertised_from: first }
}

/// Everything offered, by key.
pub(crate) const APIS: &[Api] = &[
    // Advertised from 0, or librdkafka up to 2.11 would send uncompressed (KAFKA-18659).
    Api { key: ApiKey::Produce, versions: 3..=13, advertised_from: 0 },
    api(ApiKey::Fetch, 4, 18),
    api(ApiKey::ListOffsets, 1, 10),
    api(ApiKey::Metadata, 0, 13),
    api(ApiKey::OffsetCommit, 2, 9),
    api(ApiKey::OffsetFetch, 1, 9),
    api(ApiKey::FindCoordinator, 0, 6),
    api(ApiKey::JoinGroup, 0, 9),
    api(ApiKey::Heartbeat, 0, 4),
    api(ApiKey::LeaveGroup, 0, 5),
    api(ApiKey::SyncGroup, 0, 5),
    api(ApiKey::DescribeGroups, 0, 6),
    api(ApiKey::ListGroups, 0, 5),
    api(ApiKey::ApiVersions, 0, 4),
    api(ApiKey::CreateTopics, 2, 7),
    api(ApiKey::DeleteTopics, 1, 6),
    api(ApiKey::DeleteRecords, 0, 2),
    api(ApiKey::InitProducerId, 0, 5),
    api(ApiKey::OffsetForLeaderEpoch, 2, 4),
    api(ApiKey::DescribeConfigs, 1, 4),
    api(ApiKey::AlterConfigs, 0, 2),
    api(ApiKey::DescribeLogDirs, 1, 4),
    api(ApiKey::CreatePartitions, 0, 3),
    api(ApiKey::DeleteGroups, 0, 2),
    api(ApiKey::ElectLeaders, 0, 2),
    api(ApiKey::IncrementalAlterConfigs, 0, 1),
    api(ApiKey::AlterPartitionReassignments, 0, 0),
    api(ApiKey::ListPartitionReassignments, 0, 0),
    api(ApiKey::OffsetDelete, 0, 0),
    api(ApiKey::DescribeCluster, 0, 2),
    api(ApiKey::DescribeProducers, 0, 0),
    api(ApiKey::DescribeTopicPartitions, 0, 0),
];

/// Whether a request may change the cluster's metadata, so that it must not end half way.
pub(crate) fn changes_metadata(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::CreateTopics
            | ApiKey::DeleteTopics
            | ApiKey::CreatePartitions
            | ApiKey::AlterConfigs
            | ApiKey::IncrementalAlterConfigs
            | ApiKey::InitProducerId
            // Makes the offsets topic and starts its coordinators.
            | ApiKey::FindCoordinator
    )
}

/// The API with this key, if it is offered.
pub(crate) fn find(key: i16) -> Option<&'static Api> {
    APIS.iter().find(|api| api.key as i16 == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codec_encodes_every_version_offered() {
        for api in APIS {
            let known = api.key.valid_versions();
            assert!(known.min <= *api.versions.start(), "{:?}", api.key);
            assert!(known.max >= *api.versions.end(), "{:?}", api.key);
        }
        assert!(APIS.is_sorted_by_key(|api| api.key as i16));
    }
}
