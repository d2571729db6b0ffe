//! The quantities every layer speaks of. Numbers of different meaning never share a bare integer.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::Duration;

/// A record's position in its partition; the first is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Offset(pub(crate) i64);

impl Offset {
    /// The first offset of a partition.
    pub(crate) const ZERO: Self = Self(0);
}

impl Add<i64> for Offset {
    type Output = Self;
    fn add(self, count: i64) -> Self {
        Self(self.0 + count)
    }
}

impl Sub for Offset {
    type Output = i64;
    fn sub(self, other: Self) -> i64 {
        self.0 - other.0
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a leader's term; grows with each leader of a partition (KIP-101).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaderEpoch(pub(crate) i32);

impl LeaderEpoch {
    /// What requests send when they know no epoch.
    pub(crate) const UNKNOWN: Self = Self(-1);
}

impl fmt::Display for LeaderEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A broker's number in the cluster; 0 and above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BrokerId(pub(crate) i32);

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A partition's number within its topic; 0 and above.
pub(crate) type PartitionIndex = i32;

/// A partition's name. The topic's name is shared, so a clone costs no allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TopicPartition {
    /// The topic's name, already validated.
    pub(crate) topic: Arc<str>,
    /// The partition's number.
    pub(crate) partition: PartitionIndex,
}

impl TopicPartition {
    /// Names `partition` of `topic`.
    #[must_use]
    pub(crate) fn new(topic: impl Into<Arc<str>>, partition: PartitionIndex) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A topic's identity, which a topic made again under the same name does not share (KIP-516).
pub(crate) type TopicId = uuid::Uuid;

/// Identifies a producer's session (KIP-98); −1 in a batch means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProducerId(pub(crate) i64);

impl fmt::Display for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since 1970-01-01 UTC, as records carry them; −1 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Timestamp(pub(crate) i64);

impl Timestamp {
    /// What the protocol sends where there is no timestamp.
    pub(crate) const NONE: Self = Self(-1);
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A point on the monotonic clock, counted from the start of the process (from zero in tests).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Instant(Duration);

impl Instant {
    /// The clock's beginning.
    pub(crate) const ZERO: Self = Self(Duration::ZERO);

    /// The time between `earlier` and this instant; zero when `earlier` is later.
    #[must_use]
    pub(crate) fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// A topic id as Kafka prints it: URL-safe base64 without padding.
#[must_use]
pub(crate) fn topic_id_text(id: TopicId) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // 128 bits are 22 digits of six bits; the last digit has four zero bits below.
    (0..22)
        .map(|digit| {
            let shifted =
                if digit < 21 { id.as_u128() >> (122 - digit * 6) } else { id.as_u128() << 4 };
            char::from(ALPHABET[usize::try_from(shifted & 63).unwrap_or(0)])
        })
        .collect()
}

/// Reads what [`topic_id_text`] prints.
#[must_use]
pub(crate) fn parse_topic_id(text: &str) -> Option<TopicId> {
    if text.len() != 22 {
        return None;
    }
    let mut bits = 0u128;
    for (digit, byte) in text.bytes().enumerate() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = if digit < 21 {
            bits << 6 | u128::from(value)
        } else {
            bits << 2 | u128::from(value >> 4)
        };
    }
    Some(TopicId::from_u128(bits))
}

/// A topic's name has at most this many bytes (Kafka's own limit).
const TOPIC_NAME_BYTES_MAX: usize = 249;

/// What is wrong with a topic's name, in words; `None` when nothing is. The rules are Kafka's.
#[must_use]
pub(crate) fn topic_name_fault(name: &str) -> Option<&'static str> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() {
        Some("the name is empty")
    } else if name == "." || name == ".." {
        Some("the name cannot be '.' or '..'")
    } else if name.len() > TOPIC_NAME_BYTES_MAX {
        Some("the name is longer than 249 characters")
    } else if !name.bytes().all(legal) {
        Some("the name has characters other than ASCII alphanumerics, '.', '_' and '-'")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_ids_print_as_kafka_prints_them_and_read_back() {
        for bits in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210] {
            let id = TopicId::from_u128(bits);
            assert_eq!(parse_topic_id(&topic_id_text(id)), Some(id));
        }
        // Kafka's own `Uuid.ONE_UUID` and its text.
        assert_eq!(topic_id_text(TopicId::from_u128(1)), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(parse_topic_id("short"), None);
    }

    #[test]
    fn topic_names_follow_kafkas_rules() {
        for good in ["a", "A.b_c-9", "__consumer_offsets"] {
            assert_eq!(topic_name_fault(good), None, "{good}");
        }
        for bad in ["", ".", "..", "a b", "a/b", "ä", &"x".repeat(250)] {
            assert!(topic_name_fault(bad).is_some(), "{bad}");
        }
    }
}
