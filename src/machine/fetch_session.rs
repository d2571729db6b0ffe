//! Incremental fetch sessions (KIP-227): a consumer names its partitions once, later requests and
//! answers carry only what changed.

use crate::protocol::ErrorCode;
use crate::types::{Instant, Offset, TopicId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// The epoch that asks for a new session.
const INITIAL_EPOCH: i32 = 0;
/// The epoch that ends a session, or wants none.
const FINAL_EPOCH: i32 = -1;
/// A session unused for this long gives its place to a new one.
const IDLE_BEFORE_EVICTION: Duration = Duration::from_secs(120);

/// A topic as the request names it: by name up to version 12, by id from 13 on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TopicKey {
    Name(Arc<str>),
    Id(TopicId),
}

/// A partition of a session.
pub(crate) type Key = (TopicKey, i32);

/// What a client asks of a partition, and what it was told last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) fetch_offset: Offset,
    /// −1 when the client knows none.
    pub(crate) leader_epoch: i32,
    pub(crate) last_fetched_epoch: i32,
    pub(crate) bytes_max: i32,
}

/// What an answer says of a partition, as far as its news are told by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) error: ErrorCode,
    pub(crate) high_watermark: i64,
    pub(crate) log_start: i64,
    pub(crate) has_records: bool,
}

#[derive(Clone, Debug)]
struct Entry {
    key: Key,
    wanted: Wanted,
    told: Option<Told>,
}

#[derive(Clone, Debug)]
struct Session {
    epoch: i32,
    last_used: Instant,
    /// In the order of service; a partition that had records goes to the end, so that none starves.
    order: BTreeMap<u64, Entry>,
    places: HashMap<Key, u64>,
    next_place: u64,
}

/// How a request is to be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// All partitions of the request, in its order; the answer carries every one.
    Full {
        /// 0 without a session.
        session: i32,
        partitions: Vec<(Key, Wanted)>,
    },
    /// The session's partitions in order of service; the answer carries only those with news.
    Incremental { session: i32, partitions: Vec<(Key, Wanted)> },
}

/// What a request says of sessions.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) session: i32,
    pub(crate) epoch: i32,
    pub(crate) partitions: Vec<(Key, Wanted)>,
    pub(crate) forgotten: Vec<Key>,
    /// Becomes the id of a session that is made now; any but 0.
    pub(crate) fresh_id: i32,
}

/// All sessions of a broker.
#[derive(Debug)]
pub(crate) struct FetchSessions {
    most: usize,
    sessions: HashMap<i32, Session>,
}

impl FetchSessions {
    /// Keeps at most `most` sessions.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, sessions: HashMap::new() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Finds or makes the session of a request, and what is to be read for it.
    pub(crate) fn open(&mut self, now: Instant, request: Request) -> Result<Opened, ErrorCode> {
        match (request.session, request.epoch) {
            (id, INITIAL_EPOCH | FINAL_EPOCH) => {
                self.sessions.remove(&id);
                let session = if request.epoch == INITIAL_EPOCH && !request.partitions.is_empty() {
                    self.create(now, &request)
                } else {
                    0
                };
                Ok(Opened::Full { session, partitions: request.partitions })
            }
            (id, epoch) => {
                let session =
                    self.sessions.get_mut(&id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
                if session.epoch != epoch {
                    return Err(ErrorCode::InvalidFetchSessionEpoch);
                }
                session.last_used = now;
                session.epoch = if epoch == i32::MAX { 1 } else { epoch + 1 };
                request.forgotten.iter().for_each(|key| session.forget(key));
                for (key, wanted) in request.partitions {
                    session.want(key, wanted);
                }
                let partitions = session
                    .order
                    .values()
                    .map(|entry| (entry.key.clone(), entry.wanted.clone()))
                    .collect();
                Ok(Opened::Incremental { session: id, partitions })
            }
        }
    }

    /// Says whether the answer of an incremental session carries the partition, and remembers
    /// what it says. A partition with records goes to the end of the line.
    pub(crate) fn tell(&mut self, session: i32, key: &Key, told: Told) -> bool {
        let Some(session) = self.sessions.get_mut(&session) else { return true };
        let Some(&place) = session.places.get(key) else { return true };
        let Some(entry) = session.order.get_mut(&place) else { return true };
        let before = entry.told.replace(told);
        if told.has_records
            && let Some(entry) = session.order.remove(&place)
        {
            session.append(entry);
        }
        told.has_records
            || told.error != ErrorCode::None
            || before.is_none_or(|before| {
                (before.error, before.high_watermark, before.log_start)
                    != (told.error, told.high_watermark, told.log_start)
            })
    }

    fn create(&mut self, now: Instant, request: &Request) -> i32 {
        if self.sessions.len() >= self.most && !self.evict(now) {
            return 0;
        }
        if request.fresh_id == 0 || self.sessions.contains_key(&request.fresh_id) {
            return 0;
        }
        let mut session = Session {
            epoch: 1,
            last_used: now,
            order: BTreeMap::new(),
            places: HashMap::new(),
            next_place: 0,
        };
        for (key, wanted) in &request.partitions {
            session.want(key.clone(), wanted.clone());
        }
        self.sessions.insert(request.fresh_id, session);
        request.fresh_id
    }

    /// Makes room if the session unused the longest was so for long.
    fn evict(&mut self, now: Instant) -> bool {
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.last_used);
        let Some((&id, session)) = oldest else { return false };
        if now.saturating_since(session.last_used) < IDLE_BEFORE_EVICTION {
            return false;
        }
        self.sessions.remove(&id);
        true
    }
}

impl Session {
    fn want(&mut self, key: Key, wanted: Wanted) {
        match self.places.get(&key).and_then(|place| self.order.get_mut(place)) {
            Some(entry) => entry.wanted = wanted,
            None => self.append(Entry { key, wanted, told: None }),
        }
    }

    fn append(&mut self, entry: Entry) {
        self.places.insert(entry.key.clone(), self.next_place);
        self.order.insert(self.next_place, entry);
        self.next_place += 1;
    }

    fn forget(&mut self, key: &Key) {
        if let Some(place) = self.places.remove(key) {
            self.order.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(partition: i32) -> Key {
        (TopicKey::Name("t".into()), partition)
    }

    fn wanted(offset: i64) -> Wanted {
        Wanted {
            fetch_offset: Offset(offset),
            leader_epoch: -1,
            last_fetched_epoch: -1,
            bytes_max: 1,
        }
    }

    fn request(session: i32, epoch: i32, partitions: &[i32]) -> Request {
        Request {
            session,
            epoch,
            partitions: partitions.iter().map(|number| (key(*number), wanted(0))).collect(),
            forgotten: Vec::new(),
            fresh_id: 9,
        }
    }

    fn told(high_watermark: i64, has_records: bool) -> Told {
        Told { error: ErrorCode::None, high_watermark, log_start: 0, has_records }
    }

    fn order(opened: Result<Opened, ErrorCode>) -> Vec<i32> {
        match opened.expect("opened") {
            Opened::Full { partitions, .. } | Opened::Incremental { partitions, .. } => {
                partitions.into_iter().map(|((_, number), _)| number).collect()
            }
        }
    }

    #[test]
    fn a_session_is_made_kept_and_ended() {
        let mut sessions = FetchSessions::new(5);
        let made = sessions.open(Instant::ZERO, request(0, 0, &[0, 1])).expect("made");
        assert!(matches!(made, Opened::Full { session: 9, .. }));
        assert_eq!(order(sessions.open(Instant::ZERO, request(9, 1, &[2]))), [0, 1, 2]);
        let mut less = request(9, 2, &[]);
        less.forgotten = vec![key(1)];
        assert_eq!(order(sessions.open(Instant::ZERO, less)), [0, 2]);
        let wrong = sessions.open(Instant::ZERO, request(9, 2, &[]));
        assert_eq!(wrong, Err(ErrorCode::InvalidFetchSessionEpoch));
        let ended = sessions.open(Instant::ZERO, request(9, -1, &[0])).expect("ended");
        assert!(matches!(ended, Opened::Full { session: 0, .. }));
        let gone = sessions.open(Instant::ZERO, request(9, 3, &[]));
        assert_eq!(gone, Err(ErrorCode::FetchSessionIdNotFound));
    }

    #[test]
    fn only_news_are_told_and_served_partitions_go_last() {
        let mut sessions = FetchSessions::new(5);
        sessions.open(Instant::ZERO, request(0, 0, &[0, 1])).expect("made");
        assert!(sessions.tell(9, &key(0), told(5, true)));
        assert!(sessions.tell(9, &key(1), told(7, false)));
        assert_eq!(order(sessions.open(Instant::ZERO, request(9, 1, &[]))), [1, 0]);
        assert!(!sessions.tell(9, &key(1), told(7, false)));
        assert!(sessions.tell(9, &key(1), told(8, false)));
        assert!(!sessions.tell(9, &key(0), told(5, false)));
    }

    #[test]
    fn a_full_cache_gives_no_session_until_one_was_idle_for_long() {
        let mut sessions = FetchSessions::new(1);
        sessions.open(Instant::ZERO, request(0, 0, &[0])).expect("made");
        let mut second = request(0, 0, &[1]);
        second.fresh_id = 10;
        let refused = sessions.open(Instant::ZERO, second.clone()).expect("opened");
        assert!(matches!(refused, Opened::Full { session: 0, .. }));
        let later = Instant::ZERO + IDLE_BEFORE_EVICTION;
        let made = sessions.open(later, second).expect("opened");
        assert!(matches!(made, Opened::Full { session: 10, .. }));
        assert_eq!(sessions.len(), 1);
    }
}
