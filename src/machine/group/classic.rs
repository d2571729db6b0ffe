//! One classic group while this broker coordinates it: who is in, and what is waited for.

use super::Config;
use super::event::Ticket;
use super::member::{Member, Members, Unanswered};
use super::record::{Generation, GroupId, GroupMetadata, MemberId, Record};
use super::response::{GroupState, Joined, JoinedMember, Response, Synced};
use super::timers::Timer;
use super::turn::Turn;
use crate::limits;
use crate::protocol::ErrorCode;
use crate::types::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The protocol type of consumers; only of these is it known what subscriptions look like.
pub(super) const CONSUMER: &str = "consumer";

/// One group. Its methods stand with the API they serve: `join`, `rebalance`, `sync`, `leave` …
#[derive(Debug)]
pub(super) struct Group {
    /// Its name.
    pub(super) id: GroupId,
    /// Where it stands.
    pub(super) phase: Phase,
    /// Wall time since when it stands there; unknown when an old record did not say.
    pub(super) state_since: Option<Timestamp>,
    /// The last rebalance.
    pub(super) generation: Generation,
    /// What its members are; none until the first joins, kept when the last leaves.
    pub(super) protocol_type: Option<Arc<str>>,
    /// The assignor of this generation.
    pub(super) protocol: Option<Arc<str>>,
    /// Who assigns; one of the members whenever there are any.
    pub(super) leader: Option<MemberId>,
    /// Who is in.
    pub(super) members: Members,
    /// Ids given out that have not come back yet (KIP-394).
    pub(super) pending: BTreeSet<MemberId>,
}

/// Where a group stands.
#[derive(Debug)]
pub(super) enum Phase {
    /// No members.
    Empty,
    /// Waits for all members to join.
    Preparing {
        /// Set while a group that was empty gathers its first members.
        initial: Option<InitialDelay>,
    },
    /// Waits for the leader's assignment.
    Completing {
        /// Members that know the generation but have not asked for their assignment.
        unsynced: BTreeSet<MemberId>,
    },
    /// Every member may work.
    Stable {
        /// As above: the leader may have been quicker than the others.
        unsynced: BTreeSet<MemberId>,
    },
}

/// How a new group waits for members, so that a deployment does not rebalance once for each
/// (KIP-134).
#[derive(Debug)]
pub(super) struct InitialDelay {
    /// What was waited last.
    pub(super) waited: Duration,
    /// What may be waited beyond that.
    pub(super) remaining: Duration,
    /// Somebody joined during the last wait, so more may come.
    pub(super) joined_meanwhile: bool,
}

impl Group {
    /// A group nobody has joined.
    pub(super) fn new(id: GroupId, since: Timestamp) -> Self {
        Self {
            id,
            phase: Phase::Empty,
            state_since: Some(since),
            generation: Generation::default(),
            protocol_type: None,
            protocol: None,
            leader: None,
            members: Members::default(),
            pending: BTreeSet::new(),
        }
    }

    /// A group as the log knows it: with members, they go on working.
    pub(super) fn loaded(id: GroupId, saved: &GroupMetadata) -> Self {
        let members = Members::loaded(saved);
        let named = saved.leader.clone().filter(|leader| members.contains(leader));
        let first = members.iter().next().map(|member| member.id.clone());
        let empty = members.is_empty();
        Self {
            id,
            phase: if empty { Phase::Empty } else { Phase::Stable { unsynced: BTreeSet::new() } },
            state_since: saved.state_since,
            generation: saved.generation,
            protocol_type: Some(saved.protocol_type.clone()).filter(|kind| !kind.is_empty()),
            protocol: (!empty).then(|| saved.protocol.clone().unwrap_or_default()),
            leader: named.or(first),
            members,
            pending: BTreeSet::new(),
        }
    }

    /// Where it stands, as clients name it.
    pub(super) fn state(&self) -> GroupState {
        match self.phase {
            Phase::Empty => GroupState::Empty,
            Phase::Preparing { .. } => GroupState::PreparingRebalance,
            Phase::Completing { .. } => GroupState::CompletingRebalance,
            Phase::Stable { .. } => GroupState::Stable,
        }
    }

    /// Moves on.
    pub(super) fn enter(&mut self, phase: Phase, turn: &Turn<'_>) {
        self.phase = phase;
        self.state_since = Some(turn.at.wall);
    }

    /// Whether `id` assigns.
    pub(super) fn is_leader(&self, id: &str) -> bool {
        self.leader.as_deref() == Some(id)
    }

    /// Whether its members are consumers.
    pub(super) fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Whether forgetting the group loses nothing the log does not know.
    pub(super) fn is_idle(&self) -> bool {
        self.members.is_empty() && self.pending.is_empty() && matches!(self.phase, Phase::Empty)
    }

    /// Whether a joiner may come in. Ids given out count as well, or a burst of newcomers passes
    /// the limit (KAFKA-9844). While the group gathers, those who have joined count, not those
    /// known, so that the last to come again are the ones left out (KAFKA-9885). Whoever takes an
    /// existing static member's place adds nobody.
    pub(super) fn has_room(
        &self,
        member_id: &str,
        instance: Option<&str>,
        config: &Config,
    ) -> bool {
        let max = config.group_max_size.min(limits::GROUP_MEMBERS_MAX);
        if instance.is_some_and(|instance| self.members.by_static(instance).is_some()) {
            return true;
        }
        let known = self.members.get(member_id);
        let promised = if member_id.is_empty() { self.pending.len() } else { 0 };
        match self.phase {
            Phase::Preparing { .. } => {
                known.is_some_and(Member::awaits_join)
                    || self.members.awaiting_join() + promised < max
            }
            Phase::Empty | Phase::Completing { .. } | Phase::Stable { .. } => {
                known.is_some() || self.members.len() + promised < max
            }
        }
    }

    /// The member gave a sign of life: its silence counts from now.
    pub(super) fn touch(&self, id: &str, turn: &mut Turn<'_>) {
        if let Some(member) = self.members.get(id) {
            turn.start(self.session_of(&member.id), member.session_timeout);
        }
    }

    /// The timer of a member's silence.
    pub(super) fn session_of(&self, id: &MemberId) -> Timer {
        Timer::Session(self.id.clone(), id.clone())
    }

    /// Answers the join of `id` that waits, if one does; the answer is a sign of life.
    pub(super) fn answer_join(&mut self, id: &str, joined: Joined, turn: &mut Turn<'_>) {
        if let Some(ticket) = self.members.take_join(id) {
            self.touch(id, turn);
            turn.reply(ticket, Response::JoinGroup(joined));
        }
    }

    /// Answers the sync of `id` that waits, if one does. Its session begins again, because while
    /// it waited the end of its session was ignored.
    pub(super) fn answer_sync(&mut self, id: &str, synced: Synced, turn: &mut Turn<'_>) {
        if let Some(ticket) = self.members.take_sync(id) {
            self.touch(id, turn);
            turn.reply(ticket, Response::SyncGroup(synced));
        }
    }

    /// What a member of this generation is told when it joins; the leader is told of all.
    pub(super) fn joined(&self, id: &MemberId) -> Joined {
        let leads = self.is_leader(id);
        Joined {
            error: ErrorCode::None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            skip_assignment: false,
            member_id: id.clone(),
            members: if leads { self.all_joined() } else { Vec::new() },
        }
    }

    fn all_joined(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let seen = |member: &Member| JoinedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol).unwrap_or_default(),
        };
        self.members.iter().map(seen).collect()
    }

    /// The group as the log shall keep it, each member with what `assignment` gives it.
    pub(super) fn to_record(&self, assignment: impl Fn(&Member) -> Arc<[u8]>) -> Record {
        self.to_record_with(&self.members, self.leader.clone(), assignment)
    }

    /// The same, if it had other members and another leader.
    pub(super) fn to_record_with(
        &self,
        members: &Members,
        leader: Option<MemberId>,
        assignment: impl Fn(&Member) -> Arc<[u8]>,
    ) -> Record {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        Record::GroupMetadata {
            group: self.id.clone(),
            metadata: GroupMetadata {
                protocol_type: self.protocol_type.clone().unwrap_or_default(),
                generation: self.generation,
                protocol: self.protocol.clone(),
                leader,
                state_since: self.state_since,
                members: members.iter().map(|m| m.to_saved(protocol, assignment(m))).collect(),
            },
        }
    }
}

impl Joined {
    /// A refusal; `member_id` is the id the client shall go on with.
    pub(super) fn refused(error: ErrorCode, member_id: MemberId) -> Self {
        Self {
            error,
            generation: Generation::NONE,
            protocol_type: None,
            protocol: None,
            leader: MemberId::default(),
            skip_assignment: false,
            member_id,
            members: Vec::new(),
        }
    }
}

impl Synced {
    /// A refusal.
    pub(super) fn refused(error: ErrorCode) -> Self {
        Self { error, protocol_type: None, protocol: None, assignment: Arc::from([]) }
    }
}

/// Answers every request of a member that is gone with `error`.
pub(super) fn dismiss(
    gone: Unanswered,
    (error, member_id): (ErrorCode, MemberId),
    turn: &mut Turn<'_>,
) {
    if let Some(ticket) = gone.join {
        turn.reply(ticket, Response::JoinGroup(Joined::refused(error, member_id)));
    }
    if let Some(ticket) = gone.sync {
        turn.reply(ticket, Response::SyncGroup(Synced::refused(error)));
    }
}

/// Answers a request that its own client has made again; the new one waits in its place.
pub(super) fn supersede_join(ticket: Option<Ticket>, member_id: &MemberId, turn: &mut Turn<'_>) {
    if let Some(ticket) = ticket {
        let refused = Joined::refused(ErrorCode::RebalanceInProgress, member_id.clone());
        turn.reply(ticket, Response::JoinGroup(refused));
    }
}
