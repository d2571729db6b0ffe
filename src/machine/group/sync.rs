//! SyncGroup, v0–v5. Members ask for their assignment; the leader brings them all.
//! v3: static members are fenced (KIP-345). v5: the protocol must be the one agreed on (KIP-559).
//! Order of refusal: group id, unknown group, member, generation, protocol.

use super::GroupMachine;
use super::classic::{Group, Phase};
use super::event::{Moment, SyncGroup, Ticket};
use super::record::{Generation, GroupId, MemberId, Record};
use super::response::{Effect, Response, Synced};
use super::turn::{Purpose, Turn};
use crate::protocol::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

impl GroupMachine {
    /// A member asks for its assignment.
    pub(crate) fn handle_sync_group(
        &mut self,
        at: Moment,
        sync: SyncGroup,
        effects: &mut Vec<Effect>,
    ) {
        let ticket = sync.ticket;
        let (groups, mut turn) = self.begin(at, effects);
        let checked = if sync.group.is_empty() {
            Err(ErrorCode::InvalidGroupId)
        } else {
            groups.get_mut(&sync.group).ok_or(ErrorCode::UnknownMemberId)
        };
        let checked = checked.and_then(|group| group.check_sync(&sync).map(|()| group));
        match checked {
            Ok(group) => group.sync(sync, &mut turn),
            Err(error) => turn.reply(ticket, Response::SyncGroup(Synced::refused(error))),
        }
    }

    /// The leader's assignment is kept: tell it to all.
    pub(super) fn assigned(
        &mut self,
        at: Moment,
        (group, generation): (&GroupId, Generation),
        records: &[Record],
        effects: &mut Vec<Effect>,
    ) {
        let (groups, mut turn) = self.resume(at, effects);
        let Some(group) = groups.get_mut(group) else { return };
        if group.generation == generation {
            for record in records {
                group.take_assignment(record);
            }
            group.settle(&mut turn);
        }
    }

    /// The leader's assignment could not be kept: nobody may work by it.
    pub(super) fn not_assigned(
        &mut self,
        at: Moment,
        (group, generation): (&GroupId, Generation),
        error: ErrorCode,
        effects: &mut Vec<Effect>,
    ) {
        let (groups, mut turn) = self.resume(at, effects);
        let Some(group) = groups.get_mut(group) else { return };
        if group.generation == generation {
            group.reset_assignment(error, &mut turn);
            group.rebalance_or_go_on(&mut turn);
        }
    }
}

impl Group {
    fn check_sync(&self, sync: &SyncGroup) -> Result<(), ErrorCode> {
        let claim = &sync.member;
        self.members.check(&claim.member_id, claim.instance_id.as_deref())?;
        if claim.generation != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let differs = |said: &Option<Arc<str>>, ours: &Option<Arc<str>>| {
            said.is_some() && ours.is_some() && said != ours
        };
        if differs(&sync.protocol_type, &self.protocol_type)
            || differs(&sync.protocol, &self.protocol)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn sync(&mut self, sync: SyncGroup, turn: &mut Turn<'_>) {
        let SyncGroup { ticket, member, assignments, .. } = sync;
        let id = member.member_id;
        match self.phase {
            Phase::Empty => {
                let refused = Synced::refused(ErrorCode::UnknownMemberId);
                turn.reply(ticket, Response::SyncGroup(refused));
            }
            Phase::Preparing { .. } => {
                let refused = Synced::refused(ErrorCode::RebalanceInProgress);
                turn.reply(ticket, Response::SyncGroup(refused));
            }
            Phase::Completing { .. } => {
                self.wait_for_assignment(&id, ticket, turn);
                if self.is_leader(&id) {
                    self.keep_assignment(assignments, turn);
                }
            }
            Phase::Stable { .. } => {
                self.synced(&id, turn);
                self.touch(&id, turn);
                let synced = self.synced_as(&id);
                turn.reply(ticket, Response::SyncGroup(synced));
            }
        }
    }

    fn wait_for_assignment(&mut self, id: &str, ticket: Ticket, turn: &mut Turn<'_>) {
        if let Some(superseded) = self.members.park_sync(id, ticket) {
            let refused = Synced::refused(ErrorCode::RebalanceInProgress);
            turn.reply(superseded, Response::SyncGroup(refused));
        }
        self.synced(id, turn);
    }

    /// Has the leader's decision written. Members it does not name get nothing; names that are no
    /// members are dropped.
    fn keep_assignment(&mut self, assignments: Vec<(MemberId, Arc<[u8]>)>, turn: &mut Turn<'_>) {
        let assignments: BTreeMap<MemberId, Arc<[u8]>> = assignments.into_iter().collect();
        let record =
            self.to_record(|member| assignments.get(&member.id).cloned().unwrap_or_default());
        let purpose = Purpose::Assign { group: self.id.clone(), generation: self.generation };
        turn.append(vec![record], purpose);
    }

    fn take_assignment(&mut self, record: &Record) {
        let Record::GroupMetadata { metadata, .. } = record else { return };
        let kept: BTreeMap<&str, &Arc<[u8]>> =
            metadata.members.iter().map(|saved| (&*saved.member_id, &saved.assignment)).collect();
        self.members.assign(|id| kept.get(id).map(|assignment| Arc::clone(assignment)));
    }

    /// The generation stands.
    fn settle(&mut self, turn: &mut Turn<'_>) {
        let Phase::Completing { unsynced } = &mut self.phase else { return };
        let unsynced = std::mem::take(unsynced);
        self.enter(Phase::Stable { unsynced }, turn);
        for id in self.members.ids(|_| true) {
            let synced = self.synced_as(&id);
            self.answer_sync(&id, synced, turn);
        }
    }

    fn synced_as(&self, id: &str) -> Synced {
        Synced {
            error: ErrorCode::None,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: self.members.get(id).map(|m| m.assignment.clone()).unwrap_or_default(),
        }
    }
}
