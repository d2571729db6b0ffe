//! The members of one group, and what can be said of them together.

use super::event::{JoinGroup, Protocol, Ticket};
use super::record::{GroupMetadata, InstanceId, MemberId, SavedMember};
use crate::protocol::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One member that has joined at least once.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The coordinator's name for it.
    pub(super) id: MemberId,
    /// Its own name, if it is static.
    pub(super) instance_id: Option<InstanceId>,
    /// The client id of its join.
    pub(super) client_id: Arc<str>,
    /// Where its join came from.
    pub(super) client_host: Arc<str>,
    /// How long a rebalance waits for it.
    pub(super) rebalance_timeout: Duration,
    /// How long it may be silent.
    pub(super) session_timeout: Duration,
    /// What it can do, best first; never empty.
    pub(super) protocols: Vec<Protocol>,
    /// What the leader gave it last; empty while the leader decides.
    pub(super) assignment: Arc<[u8]>,
    /// Its first join is not answered yet: it knows no id, so it cannot send heartbeats.
    pub(super) is_new: bool,
    awaiting_join: Option<Ticket>,
    awaiting_sync: Option<Ticket>,
}

impl Member {
    /// A member whose first join waits for its answer.
    pub(super) fn joining(id: MemberId, join: JoinGroup) -> Self {
        Self {
            id,
            rebalance_timeout: join.patience(),
            instance_id: join.instance_id,
            client_id: join.client_id,
            client_host: join.client_host,
            session_timeout: join.session_timeout,
            protocols: join.protocols,
            assignment: Arc::from([]),
            is_new: true,
            awaiting_join: Some(join.ticket),
            awaiting_sync: None,
        }
    }

    /// A member as the log knows it: of what it can do, only what was agreed on.
    pub(super) fn loaded(saved: &SavedMember, protocol: &Arc<str>) -> Self {
        Self {
            id: saved.member_id.clone(),
            instance_id: saved.instance_id.clone(),
            client_id: saved.client_id.clone(),
            client_host: saved.client_host.clone(),
            rebalance_timeout: saved.rebalance_timeout,
            session_timeout: saved.session_timeout,
            protocols: vec![Protocol {
                name: protocol.clone(),
                metadata: saved.subscription.clone(),
            }],
            assignment: saved.assignment.clone(),
            is_new: false,
            awaiting_join: None,
            awaiting_sync: None,
        }
    }

    /// The member as the log will keep it.
    pub(super) fn to_saved(&self, protocol: &str, assignment: Arc<[u8]>) -> SavedMember {
        SavedMember {
            member_id: self.id.clone(),
            instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout: self.rebalance_timeout,
            session_timeout: self.session_timeout,
            subscription: self.metadata(protocol).unwrap_or_default(),
            assignment,
        }
    }

    /// What it says of itself under `protocol`.
    pub(super) fn metadata(&self, protocol: &str) -> Option<Arc<[u8]>> {
        let offered = self.protocols.iter().find(|offered| &*offered.name == protocol);
        offered.map(|offered| offered.metadata.clone())
    }

    /// Whether a join waits for its answer.
    pub(super) fn awaits_join(&self) -> bool {
        self.awaiting_join.is_some()
    }

    /// Whether a request of it is parked here, which proves it alive as well as a heartbeat. A new
    /// member's join does not: its client may be long gone (KAFKA-7610).
    pub(super) fn is_proven_alive(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }
}

/// The members by id, with the counts that would be too slow to take each time.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    by_id: BTreeMap<MemberId, Member>,
    by_instance: BTreeMap<InstanceId, MemberId>,
    /// How many members offer each protocol.
    offers: BTreeMap<Arc<str>, usize>,
    awaiting_join: usize,
}

impl Members {
    /// The members of a saved group.
    pub(super) fn loaded(metadata: &GroupMetadata) -> Self {
        let protocol = metadata.protocol.clone().unwrap_or_default();
        let mut members = Self::default();
        for saved in &metadata.members {
            let member = Member::loaded(saved, &protocol);
            let twin = saved.instance_id.as_ref().is_some_and(|id| members.by_static(id).is_some());
            if !twin && !members.contains(&member.id) {
                members.insert(member);
            }
        }
        members
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// All, ordered by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_id.values()
    }

    /// The ids of those for which `wanted` holds, in order.
    pub(super) fn ids(&self, wanted: impl Fn(&Member) -> bool) -> Vec<MemberId> {
        self.iter().filter(|member| wanted(member)).map(|member| member.id.clone()).collect()
    }

    /// One of them.
    pub(super) fn get(&self, id: &str) -> Option<&Member> {
        self.by_id.get(id)
    }

    /// Whether `id` is one of them.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// Which member now goes by the static name `instance_id`.
    pub(super) fn by_static(&self, instance_id: &str) -> Option<&MemberId> {
        self.by_instance.get(instance_id)
    }

    /// Whether a request may speak for `id`. Whoever still uses an id that was replaced is fenced,
    /// and whoever uses another member's id under its own static name too (KIP-345).
    pub(super) fn check(&self, id: &str, instance_id: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.by_static(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(current) if **current != *id => return Err(ErrorCode::FencedInstanceId),
                Some(_current) => {}
            }
        }
        if self.contains(id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// How many joins wait for their answer.
    pub(super) fn awaiting_join(&self) -> usize {
        self.awaiting_join
    }

    /// Whether one of `names` is offered by every member.
    pub(super) fn all_offer_one_of<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        names.into_iter().any(|name| self.offers.get(name).copied().unwrap_or(0) == self.len())
    }

    /// The protocol for the next generation: of those all offer, each member votes for the one it
    /// likes best. A tie goes to the first by name, so that every run decides alike.
    pub(super) fn elect_protocol(&self) -> Option<Arc<str>> {
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.iter() {
            let best = member.protocols.iter().find(|p| self.all_offer_one_of([&*p.name]))?;
            *votes.entry(&best.name).or_default() += 1;
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.clone())
    }

    /// The longest any member may make a rebalance wait.
    pub(super) fn rebalance_timeout(&self) -> Duration {
        self.iter().map(|member| member.rebalance_timeout).max().unwrap_or_default()
    }

    /// Adds a member whose id and static name are free.
    pub(super) fn insert(&mut self, member: Member) {
        if let Some(instance_id) = &member.instance_id {
            let before = self.by_instance.insert(instance_id.clone(), member.id.clone());
            assert!(before.is_none(), "two members under one static name");
        }
        self.add_offers(&member.protocols);
        self.awaiting_join += usize::from(member.awaits_join());
        let before = self.by_id.insert(member.id.clone(), member);
        assert!(before.is_none(), "two members under one id");
    }

    /// Takes a member out, with the tickets it leaves unanswered.
    pub(super) fn remove(&mut self, id: &str) -> Option<(Member, Unanswered)> {
        let mut member = self.by_id.remove(id)?;
        if let Some(instance_id) = &member.instance_id {
            self.by_instance.remove(instance_id);
        }
        self.retract_offers(&member.protocols);
        self.awaiting_join -= usize::from(member.awaits_join());
        let unanswered =
            Unanswered { join: member.awaiting_join.take(), sync: member.awaiting_sync.take() };
        Some((member, unanswered))
    }

    /// A known member joins again: it says anew what it can do and how patient to be with it
    /// (KAFKA-14009). Gives back an older join of it that still waited.
    pub(super) fn rejoin(&mut self, id: &str, join: &JoinGroup) -> Option<Ticket> {
        let member = self.by_id.get_mut(id)?;
        member.client_id = join.client_id.clone();
        member.client_host = join.client_host.clone();
        member.rebalance_timeout = join.patience();
        member.session_timeout = join.session_timeout;
        let before = std::mem::replace(&mut member.protocols, join.protocols.clone());
        let superseded = member.awaiting_join.replace(join.ticket);
        self.awaiting_join += usize::from(superseded.is_none());
        self.add_offers(&join.protocols);
        self.retract_offers(&before);
        superseded
    }

    /// Gives a static member its next id; all else stays. Returns what the old id still asked.
    pub(super) fn rename(&mut self, old: &str, new: MemberId) -> Unanswered {
        let Some((mut member, unanswered)) = self.remove(old) else { return Unanswered::default() };
        member.id = new;
        member.is_new = false;
        self.insert(member);
        unanswered
    }

    /// Parks a sync. Gives back an older one that still waited.
    pub(super) fn park_sync(&mut self, id: &str, ticket: Ticket) -> Option<Ticket> {
        self.by_id.get_mut(id).and_then(|member| member.awaiting_sync.replace(ticket))
    }

    /// The join of `id` that waits, to be answered now. The member is no longer new.
    pub(super) fn take_join(&mut self, id: &str) -> Option<Ticket> {
        let member = self.by_id.get_mut(id)?;
        let ticket = member.awaiting_join.take()?;
        member.is_new = false;
        self.awaiting_join -= 1;
        Some(ticket)
    }

    /// The sync of `id` that waits, to be answered now.
    pub(super) fn take_sync(&mut self, id: &str) -> Option<Ticket> {
        self.by_id.get_mut(id).and_then(|member| member.awaiting_sync.take())
    }

    /// Gives each member what `assignment` says, nothing where it is silent.
    pub(super) fn assign(&mut self, assignment: impl Fn(&str) -> Option<Arc<[u8]>>) {
        for (id, member) in &mut self.by_id {
            member.assignment = assignment(id).unwrap_or_default();
        }
    }

    fn add_offers(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            *self.offers.entry(protocol.name.clone()).or_default() += 1;
        }
    }

    fn retract_offers(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            let Some(count) = self.offers.get_mut(&protocol.name) else { continue };
            *count -= 1;
            if *count == 0 {
                self.offers.remove(&protocol.name);
            }
        }
    }
}

/// Requests of a member that has just been taken out.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    /// Its join.
    pub(super) join: Option<Ticket>,
    /// Its sync.
    pub(super) sync: Option<Ticket>,
}
