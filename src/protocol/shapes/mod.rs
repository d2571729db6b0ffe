//! What each request looks like, in every version that exists.

/// One API's request.
#[derive(Debug)]
pub(crate) struct Api {
    /// Its number.
    pub(crate) key: i16,
    /// The first version that exists.
    pub(crate) first: i16,
    /// The last version that exists.
    pub(crate) last: i16,
    /// The first version with compact lengths and tagged fields (KIP-482).
    flexible: i16,
}

impl Api {
    /// Whether `version` has compact lengths and tagged fields.
    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible
    }
}

/// The API of this number, if there is one.
pub(crate) fn find(key: i16) -> Option<&'static Api> {
    APIS.iter().find(|api| api.key == key)
}

const fn api(key: i16, first: i16, last: i16, flexible: i16) -> Api {
    Api { key, first, last, flexible }
}

static APIS: &[Api] = &[
    api(0, 3, 13, 9),        // Produce
    api(1, 4, 18, 12),       // Fetch
    api(2, 1, 10, 6),        // ListOffsets
    api(3, 0, 13, 9),        // Metadata
    api(8, 2, 10, 8),        // OffsetCommit
    api(9, 1, 10, 6),        // OffsetFetch
    api(10, 0, 6, 3),        // FindCoordinator
    api(11, 0, 9, 6),        // JoinGroup
    api(12, 0, 4, 4),        // Heartbeat
    api(13, 0, 5, 4),        // LeaveGroup
    api(14, 0, 5, 4),        // SyncGroup
    api(15, 0, 6, 5),        // DescribeGroups
    api(16, 0, 5, 3),        // ListGroups
    api(17, 0, 1, i16::MAX), // SaslHandshake
    api(18, 0, 4, 3),        // ApiVersions
    api(19, 2, 7, 5),        // CreateTopics
    api(20, 1, 6, 4),        // DeleteTopics
    api(21, 0, 2, 2),        // DeleteRecords
    api(22, 0, 6, 2),        // InitProducerId
    api(23, 2, 4, 4),        // OffsetForLeaderEpoch
    api(24, 0, 5, 3),        // AddPartitionsToTxn
    api(25, 0, 4, 3),        // AddOffsetsToTxn
    api(26, 0, 5, 3),        // EndTxn
    api(27, 1, 1, 1),        // WriteTxnMarkers
    api(28, 0, 5, 3),        // TxnOffsetCommit
    api(29, 1, 3, 2),        // DescribeAcls
    api(30, 1, 3, 2),        // CreateAcls
    api(31, 1, 3, 2),        // DeleteAcls
    api(32, 1, 4, 4),        // DescribeConfigs
    api(33, 0, 2, 2),        // AlterConfigs
    api(34, 1, 2, 2),        // AlterReplicaLogDirs
    api(35, 1, 4, 2),        // DescribeLogDirs
    api(36, 0, 2, 2),        // SaslAuthenticate
    api(37, 0, 3, 2),        // CreatePartitions
    api(38, 1, 3, 2),        // CreateDelegationToken
    api(39, 1, 2, 2),        // RenewDelegationToken
    api(40, 1, 2, 2),        // ExpireDelegationToken
    api(41, 1, 3, 2),        // DescribeDelegationToken
    api(42, 0, 2, 2),        // DeleteGroups
    api(43, 0, 2, 2),        // ElectLeaders
    api(44, 0, 1, 1),        // IncrementalAlterConfigs
    api(45, 0, 1, 0),        // AlterPartitionReassignments
    api(46, 0, 0, 0),        // ListPartitionReassignments
    api(47, 0, 0, i16::MAX), // OffsetDelete
    api(48, 0, 1, 1),        // DescribeClientQuotas
    api(49, 0, 1, 1),        // AlterClientQuotas
    api(50, 0, 0, 0),        // DescribeUserScramCredentials
    api(51, 0, 0, 0),        // AlterUserScramCredentials
    api(52, 0, 2, 0),        // Vote
    api(53, 0, 1, 1),        // BeginQuorumEpoch
    api(54, 0, 1, 1),        // EndQuorumEpoch
    api(55, 0, 2, 0),        // DescribeQuorum
    api(56, 2, 3, 0),        // AlterPartition
    api(57, 0, 2, 0),        // UpdateFeatures
    api(58, 0, 0, 0),        // Envelope
    api(59, 0, 1, 0),        // FetchSnapshot
    api(60, 0, 2, 0),        // DescribeCluster
    api(61, 0, 0, 0),        // DescribeProducers
    api(62, 0, 4, 0),        // BrokerRegistration
    api(63, 0, 1, 0),        // BrokerHeartbeat
    api(64, 0, 0, 0),        // UnregisterBroker
    api(65, 0, 0, 0),        // DescribeTransactions
    api(66, 0, 2, 0),        // ListTransactions
    api(67, 0, 0, 0),        // AllocateProducerIds
    api(68, 0, 1, 0),        // ConsumerGroupHeartbeat
    api(69, 0, 1, 0),        // ConsumerGroupDescribe
    api(70, 0, 0, 0),        // ControllerRegistration
    api(71, 0, 0, 0),        // GetTelemetrySubscriptions
    api(72, 0, 0, 0),        // PushTelemetry
    api(73, 0, 0, 0),        // AssignReplicasToDirs
    api(74, 0, 1, 0),        // ListConfigResources
    api(75, 0, 0, 0),        // DescribeTopicPartitions
    api(76, 1, 1, 0),        // ShareGroupHeartbeat
    api(77, 1, 1, 0),        // ShareGroupDescribe
    api(78, 1, 1, 0),        // ShareFetch
    api(79, 1, 1, 0),        // ShareAcknowledge
    api(80, 0, 0, 0),        // AddRaftVoter
    api(81, 0, 0, 0),        // RemoveRaftVoter
    api(82, 0, 0, 0),        // UpdateRaftVoter
    api(83, 0, 0, 0),        // InitializeShareGroupState
    api(84, 0, 0, 0),        // ReadShareGroupState
    api(85, 0, 0, 0),        // WriteShareGroupState
    api(86, 0, 0, 0),        // DeleteShareGroupState
    api(87, 0, 0, 0),        // ReadShareGroupStateSummary
    api(88, 0, 0, 0),        // StreamsGroupHeartbeat
    api(89, 0, 0, 0),        // StreamsGroupDescribe
    api(90, 0, 0, 0),        // DescribeShareGroupOffsets
    api(91, 0, 0, 0),        // AlterShareGroupOffsets
    api(92, 0, 0, 0),        // DeleteShareGroupOffsets
];
