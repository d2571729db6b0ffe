//! Creating topics and adding partitions.

use super::{PartitionState, Picture, Topic};
use crate::limits;
use crate::protocol::ErrorCode;
use crate::types::{BrokerId, LeaderEpoch, TopicId, topic_name_fault};
use std::collections::BTreeMap;

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Refusal {
    /// A refusal in words.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A topic that a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewTopic {
    pub(crate) name: String,
    /// Becomes its identity.
    pub(crate) id: TopicId,
    /// How many; −1 takes the broker's default.
    pub(crate) partitions: i32,
    /// Of each partition; −1 takes the broker's default.
    pub(crate) replication_factor: i16,
    /// Replicas by partition, in place of the two numbers.
    pub(crate) assignment: BTreeMap<i32, Vec<BrokerId>>,
    /// Settings, already checked.
    pub(crate) overrides: BTreeMap<String, String>,
}

/// Checks a new topic and places its partitions. The defaults are what −1 stands for.
pub(crate) fn plan_topic(
    picture: &Picture,
    new: NewTopic,
    (default_partitions, default_factor): (i32, i16),
) -> Result<Topic, Refusal> {
    check_name(picture, &new.name)?;
    let partitions = if new.assignment.is_empty() {
        let count = if new.partitions == -1 { default_partitions } else { new.partitions };
        let factor = match new.replication_factor {
            -1 => default_factor,
            factor => factor,
        };
        place(picture, 0, count, factor)?
    } else {
        if new.partitions != -1 || new.replication_factor != -1 {
            let message = "a replica assignment excludes numbers of partitions and replicas";
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
        if !new.assignment.keys().copied().zip(0..).all(|(key, number)| key == number) {
            let message = "partitions of an assignment are numbered from 0 without gaps";
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        let rows: Vec<_> = new.assignment.into_values().collect();
        assigned(picture, &rows)?
    };
    Ok(Topic { name: new.name.into(), id: new.id, partitions, overrides: new.overrides })
}

/// Checks that a topic may have `count` partitions, and places those it lacks.
pub(crate) fn plan_partitions(
    picture: &Picture,
    topic: &Topic,
    count: i32,
    assignment: Option<&[Vec<BrokerId>]>,
) -> Result<Vec<PartitionState>, Refusal> {
    let have = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
    let added = count.saturating_sub(have);
    if added <= 0 {
        let message = if added == 0 {
            format!("the topic already has {have} partitions")
        } else {
            format!("the topic has {have} partitions, which is more than {count}")
        };
        return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
    }
    match assignment {
        None => {
            let factor = topic.partitions.first().map_or(1, |first| first.replicas.len());
            place(picture, have, added, i16::try_from(factor).unwrap_or(i16::MAX))
        }
        Some(rows) if i32::try_from(rows.len()).is_ok_and(|rows| rows == added) => {
            assigned(picture, rows)
        }
        Some(rows) => {
            let message = format!("{added} partitions are added but {} are assigned", rows.len());
            Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message))
        }
    }
}

fn check_name(picture: &Picture, name: &str) -> Result<(), Refusal> {
    if let Some(fault) = topic_name_fault(name) {
        return Err(Refusal::new(ErrorCode::InvalidTopicException, fault));
    }
    if picture.topics.contains_key(name) {
        let message = format!("Topic '{name}' already exists.");
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, message));
    }
    // Metric names fold '.' into '_', so Kafka lets no two topics differ in that alone.
    let fold = |name: &str| name.replace('.', "_");
    if name.contains(['.', '_']) {
        let folded = fold(name);
        if let Some(other) = picture.topics.keys().find(|other| fold(other) == folded) {
            let message = format!("Topic '{name}' collides with existing topic '{other}'.");
            return Err(Refusal::new(ErrorCode::InvalidTopicException, message));
        }
    }
    Ok(())
}

/// Spreads `count` partitions, beginning with number `first`, over the brokers.
fn place(
    picture: &Picture,
    first: i32,
    count: i32,
    factor: i16,
) -> Result<Vec<PartitionState>, Refusal> {
    if count <= 0 || count > limits::PARTITIONS_PER_TOPIC_MAX {
        let message = format!(
            "the number of partitions must be between 1 and {}",
            limits::PARTITIONS_PER_TOPIC_MAX
        );
        return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
    }
    let brokers = &picture.brokers;
    let factor = usize::try_from(factor).unwrap_or(0);
    if factor == 0 || factor > brokers.len() {
        let message = format!(
            "the replication factor must be between 1 and the number of brokers, {}",
            brokers.len()
        );
        return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
    }
    let partitions = (first..first.saturating_add(count)).map(|number| {
        let shift = usize::try_from(number).unwrap_or(0);
        let replicas = (0..factor).map(|next| brokers[(shift + next) % brokers.len()]).collect();
        begin(replicas)
    });
    Ok(partitions.collect())
}

fn assigned(picture: &Picture, rows: &[Vec<BrokerId>]) -> Result<Vec<PartitionState>, Refusal> {
    let wrong = |message: &str| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
    let factor = rows.first().map_or(0, Vec::len);
    for replicas in rows {
        let mut distinct = replicas.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if replicas.is_empty() || distinct.len() != replicas.len() {
            return wrong("each partition needs replicas on different brokers");
        }
        if replicas.len() != factor {
            return wrong("all partitions need the same number of replicas");
        }
        if !replicas.iter().all(|replica| picture.brokers.contains(replica)) {
            return wrong("a replica is assigned to an unknown broker");
        }
    }
    Ok(rows.iter().cloned().map(begin).collect())
}

fn begin(replicas: Vec<BrokerId>) -> PartitionState {
    PartitionState {
        leader: replicas[0],
        leader_epoch: LeaderEpoch(0),
        partition_epoch: 0,
        isr: replicas.clone(),
        replicas,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn picture(brokers: i32) -> Picture {
        Picture { brokers: (1..=brokers).map(BrokerId).collect(), ..Picture::default() }
    }

    fn wanted(name: &str, partitions: i32, replication_factor: i16) -> NewTopic {
        NewTopic {
            name: name.to_owned(),
            id: TopicId::from_u128(1),
            partitions,
            replication_factor,
            assignment: BTreeMap::new(),
            overrides: BTreeMap::new(),
        }
    }

    fn refused(picture: &Picture, new: NewTopic) -> ErrorCode {
        match plan_topic(picture, new, (1, 1)) {
            Ok(_) => ErrorCode::None,
            Err(refusal) => refusal.code,
        }
    }

    #[test]
    fn a_topic_is_checked_before_it_is_placed() {
        let mut picture = picture(1);
        let made = plan_topic(&picture, wanted("a.b", -1, -1), (3, 1)).expect("planned");
        assert_eq!(made.partitions.len(), 3);
        picture.put(Arc::new(made));
        let codes = [
            (wanted("a.b", 1, 1), ErrorCode::TopicAlreadyExists),
            (wanted("a_b", 1, 1), ErrorCode::InvalidTopicException),
            (wanted("a b", 1, 1), ErrorCode::InvalidTopicException),
            (wanted("c", 0, 1), ErrorCode::InvalidPartitions),
            (wanted("c", i32::MAX, 1), ErrorCode::InvalidPartitions),
            (wanted("c", 1, 0), ErrorCode::InvalidReplicationFactor),
            (wanted("c", 1, 2), ErrorCode::InvalidReplicationFactor),
            (wanted("c", 1, 1), ErrorCode::None),
        ];
        for (new, code) in codes {
            assert_eq!(refused(&picture, new.clone()), code, "{new:?}");
        }
    }

    #[test]
    fn assignments_are_dense_distinct_and_known() {
        let picture = picture(2);
        let with = |rows: &[(i32, &[i32])]| NewTopic {
            assignment: rows
                .iter()
                .map(|(partition, replicas)| {
                    (*partition, replicas.iter().copied().map(BrokerId).collect())
                })
                .collect(),
            ..wanted("t", -1, -1)
        };
        assert_eq!(refused(&picture, with(&[(0, &[2, 1]), (1, &[1, 2])])), ErrorCode::None);
        for rows in [
            &[(1, &[1][..])][..],
            &[(0, &[][..])],
            &[(0, &[1, 1][..])],
            &[(0, &[3][..])],
            &[(0, &[1][..]), (1, &[1, 2][..])],
        ] {
            let code = refused(&picture, with(rows));
            assert_eq!(code, ErrorCode::InvalidReplicaAssignment, "{rows:?}");
        }
        let both = NewTopic { partitions: 1, ..with(&[(0, &[1])]) };
        assert_eq!(refused(&picture, both), ErrorCode::InvalidRequest);
    }

    #[test]
    fn partitions_are_only_ever_added() {
        let picture = picture(1);
        let topic = plan_topic(&picture, wanted("t", 2, 1), (1, 1)).expect("planned");
        let plan = |count| plan_partitions(&picture, &topic, count, None);
        assert_eq!(plan(5).map(|added| added.len()), Ok(3));
        for count in [2, 1, 0, -1] {
            assert_eq!(plan(count).expect_err("refused").code, ErrorCode::InvalidPartitions);
        }
        let row = vec![BrokerId(1)];
        let assigned = |rows: &[Vec<BrokerId>]| plan_partitions(&picture, &topic, 3, Some(rows));
        assert!(assigned(std::slice::from_ref(&row)).is_ok());
        assert!(assigned(&[row.clone(), row]).is_err());
    }
}
