//! JoinGroup, v0–v9. Lets members in, and begins the rebalance that takes them up.
//! v0: no rebalance timeout, the session's counts (KAFKA-8653). v4: newcomers are first given an
//! id (KIP-394). v5: static members (KIP-345). v9: a static leader may keep its assignment
//! (KIP-814).
//! Order of refusal: group id, request's shape, session timeout, unknown group, size, protocols,
//! fencing.

use super::classic::{Group, Phase, dismiss, supersede_join};
use super::event::{JoinGroup, Moment, Protocol};
use super::member::{Member, Members};
use super::record::{MemberId, Record};
use super::response::{Effect, Joined, Response};
use super::saved::Saved;
use super::turn::{Purpose, Succession, Turn};
use super::{Config, GroupMachine};
use crate::limits;
use crate::protocol::ErrorCode;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a new member's first join may wait: it has no id for heartbeats yet, and nobody sees that
/// its client is gone while the request is parked (KAFKA-7610).
const NEW_MEMBER_JOIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

impl GroupMachine {
    /// A client wants to be a member.
    pub(crate) fn handle_join_group(
        &mut self,
        at: Moment,
        mut join: JoinGroup,
        effects: &mut Vec<Effect>,
    ) {
        let refuse = |join: &JoinGroup, error| Effect::Reply {
            ticket: join.ticket,
            response: Response::JoinGroup(Joined::refused(error, join.member_id.clone())),
        };
        if let Err(error) = check_shape(&join, &self.config) {
            return effects.push(refuse(&join, error));
        }
        let known = self.groups.contains_key(&join.group);
        if !known && !join.member_id.is_empty() {
            return effects.push(refuse(&join, ErrorCode::UnknownMemberId));
        }
        if !known && self.group_count() >= limits::GROUPS_PER_PARTITION_MAX {
            return effects.push(refuse(&join, ErrorCode::PolicyViolation));
        }
        drop_repeated(&mut join.protocols);
        let id = join.group.clone();
        let (groups, mut turn) = self.begin(at, effects);
        let group = groups.entry(id.clone()).or_insert_with(|| Group::new(id.clone(), at.wall));
        group.join(join, &mut turn);
        self.forget_if_idle(&id);
    }

    /// A static member's new id is kept: now it counts.
    pub(super) fn succeeded(
        &mut self,
        at: Moment,
        succession: Succession,
        effects: &mut Vec<Effect>,
    ) {
        let (groups, mut turn) = self.resume(at, effects);
        if let Some(group) = groups.get_mut(&succession.join.group) {
            group.succeeded(succession, &mut turn);
        }
    }
}

/// What can be refused without looking at the group.
fn check_shape(join: &JoinGroup, config: &Config) -> Result<(), ErrorCode> {
    if join.group.is_empty() || join.group.len() > limits::GROUP_TEXT_BYTES_MAX {
        return Err(ErrorCode::InvalidGroupId);
    }
    let timeouts = config.group_min_session_timeout..=config.group_max_session_timeout;
    if !timeouts.contains(&join.session_timeout) {
        return Err(ErrorCode::InvalidSessionTimeout);
    }
    let stem = join.instance_id.as_ref().unwrap_or(&join.client_id);
    let fresh_bytes = stem.len() + "-".len() + join.unique.len();
    let texts = [&join.client_host, &join.protocol_type, &join.member_id];
    let names = join.protocols.iter().map(|protocol| &protocol.name);
    let longest = texts.into_iter().chain(names).map(|text| text.len()).max().unwrap_or(0);
    let metadata: usize = join.protocols.iter().map(|protocol| protocol.metadata.len()).sum();
    if longest.max(fresh_bytes) > limits::GROUP_TEXT_BYTES_MAX
        || join.protocols.len() > limits::GROUP_PROTOCOLS_PER_MEMBER_MAX
        || metadata > limits::GROUP_MEMBER_METADATA_BYTES_MAX
        || join.instance_id.as_ref().is_some_and(|instance| instance.is_empty())
    {
        return Err(ErrorCode::InvalidRequest);
    }
    Ok(())
}

/// A protocol offered twice would count as the offer of two members.
fn drop_repeated(protocols: &mut Vec<Protocol>) {
    let mut seen = BTreeSet::new();
    protocols.retain(|protocol| seen.insert(protocol.name.clone()));
}

impl JoinGroup {
    /// How long a rebalance waits for the member.
    pub(super) fn patience(&self) -> Duration {
        self.rebalance_timeout.unwrap_or(self.session_timeout)
    }
}

fn refuse(join: &JoinGroup, error: ErrorCode, member_id: MemberId, turn: &mut Turn<'_>) {
    turn.reply(join.ticket, Response::JoinGroup(Joined::refused(error, member_id)));
}

impl Group {
    fn join(&mut self, join: JoinGroup, turn: &mut Turn<'_>) {
        if !self.has_room(&join.member_id, join.instance_id.as_deref(), turn.config) {
            refuse(&join, ErrorCode::GroupMaxSizeReached, MemberId::default(), turn);
            // A member that comes again too late is out, and must not be waited for.
            self.expel(&join.member_id, ErrorCode::GroupMaxSizeReached, turn);
            return self.complete_join_if_ready(turn);
        }
        if !self.takes(&join) {
            let member_id = join.member_id.clone();
            return refuse(&join, ErrorCode::InconsistentGroupProtocol, member_id, turn);
        }
        if join.member_id.is_empty() {
            self.join_anew(join, turn);
        } else {
            self.join_again(join, turn);
        }
    }

    /// Whether the joiner is of the group's kind and shares a protocol with every member.
    fn takes(&self, join: &JoinGroup) -> bool {
        if self.members.is_empty() {
            return !join.protocol_type.is_empty() && !join.protocols.is_empty();
        }
        let names = join.protocols.iter().map(|protocol| &*protocol.name);
        self.protocol_type.as_deref() == Some(&*join.protocol_type)
            && self.members.all_offer_one_of(names)
    }

    /// Somebody without an id. A static member is known by its own name all the same, and always
    /// gets a new id, so that a twin with the same name is fenced at once (KAFKA-8500).
    fn join_anew(&mut self, join: JoinGroup, turn: &mut Turn<'_>) {
        let stem = join.instance_id.as_ref().unwrap_or(&join.client_id);
        let fresh = MemberId::from(format!("{stem}-{}", join.unique));
        assert!(
            !self.members.contains(&fresh) && !self.pending.contains(&fresh),
            "the shell gave out a member id twice"
        );
        match &join.instance_id {
            Some(name) => {
                let old = self.members.by_static(name).cloned();
                self.join_as_successor(Succession { old, new: fresh, join }, turn);
            }
            None if join.takes_member_id_first => {
                turn.start(self.session_of(&fresh), join.session_timeout);
                self.pending.insert(fresh.clone());
                refuse(&join, ErrorCode::MemberIdRequired, fresh, turn);
            }
            None => self.admit(fresh, join, turn),
        }
    }

    /// Somebody with an id that this coordinator, or the one before it, has given out.
    fn join_again(&mut self, join: JoinGroup, turn: &mut Turn<'_>) {
        let id = join.member_id.clone();
        if self.pending.contains(&id) && join.instance_id.is_none() {
            return self.admit(id, join, turn);
        }
        if let Err(error) = self.members.check(&id, join.instance_id.as_deref()) {
            return refuse(&join, error, id, turn);
        }
        let unchanged = self.members.get(&id).is_some_and(|m| m.protocols == join.protocols);
        let stands = match self.phase {
            // The members are gone, whatever their ids: it must begin anew.
            Phase::Empty => return refuse(&join, ErrorCode::UnknownMemberId, id, turn),
            Phase::Preparing { .. } => false,
            // It has most likely missed the answer.
            Phase::Completing { .. } => unchanged,
            // A leader that joins wants to assign anew: topics may have changed.
            Phase::Stable { .. } => unchanged && !self.is_leader(&id),
        };
        if stands {
            let joined = self.joined(&id);
            self.touch(&id, turn);
            return turn.reply(join.ticket, Response::JoinGroup(joined));
        }
        let superseded = self.members.rejoin(&id, &join);
        supersede_join(superseded, &id, turn);
        self.rebalance_or_go_on(turn);
    }

    /// Lets a member in under `id`.
    fn admit(&mut self, id: MemberId, join: JoinGroup, turn: &mut Turn<'_>) {
        if let Phase::Preparing { initial: Some(delay) } = &mut self.phase {
            delay.joined_meanwhile = true;
        }
        self.pending.remove(&id);
        if self.members.is_empty() {
            self.protocol_type = Some(join.protocol_type.clone());
        }
        self.leader.get_or_insert_with(|| id.clone());
        self.members.insert(Member::joining(id.clone(), join));
        turn.start(self.session_of(&id), NEW_MEMBER_JOIN_TIMEOUT);
        self.rebalance_or_go_on(turn);
    }

    /// A static member comes for the first time, is back, or has a twin. If it is not the first
    /// time, its new id is kept before it counts.
    fn join_as_successor(&mut self, succession: Succession, turn: &mut Turn<'_>) {
        match self.record_of_succession(&succession, turn.saved) {
            Some(record) => turn.append(vec![record], Purpose::Succeed(Box::new(succession))),
            None => self.succeeded(succession, turn),
        }
    }

    /// The group as the log knows it, but for the member's id; if the group stays as it is, also
    /// with what the member says of itself now. `None` if the log does not know the member.
    fn record_of_succession(&self, succession: &Succession, saved: &Saved) -> Option<Record> {
        let Succession { old, new, join } = succession;
        if let Some(members) = self.members_if_nothing_else_changes(succession) {
            let led = self.leader == *old;
            let leader = if led { Some(new.clone()) } else { self.leader.clone() };
            return Some(self.to_record_with(&members, leader, |member| member.assignment.clone()));
        }
        let mut metadata = saved.get(&self.id)?.metadata.clone()?;
        let mut members = metadata.members.iter_mut();
        let member = members.find(|member| member.instance_id == join.instance_id)?;
        if metadata.leader.as_ref() == Some(&member.member_id) {
            metadata.leader = Some(new.clone());
        }
        member.member_id = new.clone();
        metadata.members.sort_by(|one, other| one.member_id.cmp(&other.member_id));
        Some(Record::GroupMetadata { group: self.id.clone(), metadata })
    }

    /// The members after the succession, if the others need not know of it: the group is stable,
    /// and agrees on the same protocol, which the assignment rests on.
    fn members_if_nothing_else_changes(&self, succession: &Succession) -> Option<Members> {
        let Phase::Stable { .. } = self.phase else { return None };
        let Succession { old, new, join } = succession;
        let mut members = self.members.clone();
        members.rename(old.as_deref()?, new.clone());
        members.rejoin(new, join);
        (members.elect_protocol() == self.protocol).then_some(members)
    }

    /// The new id counts. During a rebalance the leader may hold the old one, so that it begins
    /// again (KAFKA-9801).
    fn succeeded(&mut self, succession: Succession, turn: &mut Turn<'_>) {
        let stands = self.members_if_nothing_else_changes(&succession).is_some();
        let Succession { old, new, join } = succession;
        let Some(old) = old else { return self.admit(new, join, turn) };
        let led = self.is_leader(&old);
        self.replace_member(&old, &new, turn);
        self.members.rejoin(&new, &join);
        self.touch(&new, turn);
        if !stands {
            return self.rebalance_or_go_on(turn);
        }
        let mut joined = self.joined(&new);
        if led && join.can_skip_assignment {
            joined.skip_assignment = true;
        } else if led {
            // An older client that hears it leads would assign: name the id it had instead, and
            // it will ask for its part like all others.
            joined.leader = old;
            joined.members.clear();
        }
        self.answer_join(&new, joined, turn);
    }

    /// The static member goes by `new` from here on. Whoever waits under `old` is fenced.
    fn replace_member(&mut self, old: &MemberId, new: &MemberId, turn: &mut Turn<'_>) {
        turn.stop(&self.session_of(old));
        let unanswered = self.members.rename(old, new.clone());
        dismiss(unanswered, (ErrorCode::FencedInstanceId, old.clone()), turn);
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        if let Phase::Completing { unsynced } | Phase::Stable { unsynced } = &mut self.phase
            && unsynced.remove(old)
        {
            unsynced.insert(new.clone());
        }
    }
}
