//! Heartbeat, v0–v4, keeps a member alive and tells it when a rebalance has begun; LeaveGroup,
//! v0–v5, takes members out. v3: static members are fenced (KIP-345); LeaveGroup names several.
//! Order of refusal: group id, unknown group, member, generation.

use super::GroupMachine;
use super::classic::{Group, Phase};
use super::event::{Heartbeat, LeaveGroup, Leaver, Moment};
use super::response::{Effect, Left, Response};
use super::turn::Turn;
use crate::protocol::ErrorCode;

impl GroupMachine {
    /// A member is alive.
    pub(crate) fn handle_heartbeat(
        &mut self,
        at: Moment,
        beat: &Heartbeat,
        effects: &mut Vec<Effect>,
    ) {
        let (groups, mut turn) = self.begin(at, effects);
        let error = if beat.group.is_empty() {
            ErrorCode::InvalidGroupId
        } else {
            let group = groups.get(&beat.group);
            group.map_or(ErrorCode::UnknownMemberId, |group| group.beat(beat, &mut turn))
        };
        turn.reply(beat.ticket, Response::Heartbeat(error));
    }

    /// Members go, or are sent away.
    pub(crate) fn handle_leave_group(
        &mut self,
        at: Moment,
        leave: LeaveGroup,
        effects: &mut Vec<Effect>,
    ) {
        let LeaveGroup { ticket, group: id, members } = leave;
        let (groups, mut turn) = self.begin(at, effects);
        let left = if id.is_empty() {
            Left { error: ErrorCode::InvalidGroupId, members: Vec::new() }
        } else if let Some(group) = groups.get_mut(&id) {
            group.leave(members, &mut turn)
        } else {
            let unknown = |member| (member, ErrorCode::UnknownMemberId);
            let members = members.into_iter().map(unknown).collect();
            Left { error: ErrorCode::None, members }
        };
        turn.reply(ticket, Response::LeaveGroup(left));
        self.forget_if_idle(&id);
    }
}

impl Group {
    fn beat(&self, beat: &Heartbeat, turn: &mut Turn<'_>) -> ErrorCode {
        let claim = &beat.member;
        if let Err(error) = self.members.check(&claim.member_id, claim.instance_id.as_deref()) {
            return error;
        }
        if claim.generation != self.generation {
            return ErrorCode::IllegalGeneration;
        }
        self.touch(&claim.member_id, turn);
        match self.phase {
            Phase::Empty => ErrorCode::UnknownMemberId,
            Phase::Preparing { .. } => ErrorCode::RebalanceInProgress,
            // A member may be told the generation and beat before the leader has assigned.
            Phase::Completing { .. } | Phase::Stable { .. } => ErrorCode::None,
        }
    }

    fn leave(&mut self, leavers: Vec<Leaver>, turn: &mut Turn<'_>) -> Left {
        let members_before = self.members.len();
        let mut members = Vec::with_capacity(leavers.len());
        for leaver in leavers {
            let error = self.leave_one(&leaver, turn);
            members.push((leaver, error));
        }
        if self.members.len() < members_before {
            self.rebalance_or_go_on(turn);
        } else {
            // An id that was given out and never used may be all that was waited for.
            self.complete_join_if_ready(turn);
        }
        Left { error: ErrorCode::None, members }
    }

    fn leave_one(&mut self, leaver: &Leaver, turn: &mut Turn<'_>) -> ErrorCode {
        let id = if leaver.member_id.is_empty() {
            // An administrator knows a static member's name only.
            let name = leaver.instance_id.as_deref();
            match name.and_then(|name| self.members.by_static(name)) {
                Some(id) => id.clone(),
                None => return ErrorCode::UnknownMemberId,
            }
        } else {
            leaver.member_id.clone()
        };
        if self.pending.contains(&id) {
            self.expel(&id, ErrorCode::UnknownMemberId, turn);
            return ErrorCode::None;
        }
        if let Err(error) = self.members.check(&id, leaver.instance_id.as_deref()) {
            return error;
        }
        self.expel(&id, ErrorCode::UnknownMemberId, turn);
        ErrorCode::None
    }
}
