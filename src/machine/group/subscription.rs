//! Which topics consumers read, as far as their own words tell. A subscription begins with a
//! version (int16) and an array of topic names in every version there is, so this prefix is all
//! that is read.

use super::classic::Group;

impl Group {
    /// Whether a member reads `topic`. A group of consumers whose words cannot be read may read
    /// anything; of members that are no consumers, this says nothing.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        if !self.is_of_consumers() || self.members.is_empty() {
            return false;
        }
        self.subscribes(topic).unwrap_or(true)
    }

    /// Whether it is known what the members read.
    pub(super) fn knows_subscriptions(&self) -> bool {
        self.is_of_consumers() && self.subscribes("").is_some()
    }

    fn subscribes(&self, topic: &str) -> Option<bool> {
        let protocol = self.protocol.as_deref()?;
        let mut found = false;
        for member in self.members.iter() {
            let words = member.metadata(protocol)?;
            found |= names_topic(&words, topic)?;
        }
        Some(found)
    }
}

/// Whether the subscription names `topic`; `None` if it is no subscription.
fn names_topic(subscription: &[u8], topic: &str) -> Option<bool> {
    let (_version, rest) = subscription.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let count = u32::try_from(i32::from_be_bytes(*count)).ok()?;
    let mut found = false;
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
        let (name, after) = after.split_at_checked(length)?;
        found |= name == topic.as_bytes();
        rest = after;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_T_AND_UV: &[u8] = b"\0\x03\0\0\0\x02\0\x01t\0\x02uvuserdata";

    #[test]
    fn the_topics_are_found_and_what_follows_is_not_read() {
        assert_eq!(names_topic(OF_T_AND_UV, "t"), Some(true));
        assert_eq!(names_topic(OF_T_AND_UV, "uv"), Some(true));
        assert_eq!(names_topic(OF_T_AND_UV, "u"), Some(false));
    }

    #[test]
    fn words_that_are_no_subscription_are_not_understood() {
        for end in 0..13 {
            assert_eq!(names_topic(&OF_T_AND_UV[..end], "t"), None, "cut at {end}");
        }
        assert_eq!(names_topic(b"\0\0\xff\xff\xff\xff", "t"), None);
        assert_eq!(names_topic(b"\0\0\0\0\0\x01\xff\xff", "t"), None);
    }
}
