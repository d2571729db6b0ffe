//! ListGroups, v0–v5, DescribeGroups, v0–v6, and DeleteGroups, v0–v2.
//! v4 of the list filters by state (KIP-518), v5 by type (KIP-848).

use super::GroupMachine;
use super::classic::{Group, Phase};
use super::event::{DeleteGroup, DescribeGroup, ListGroups, Moment, Ticket};
use super::member::Member;
use super::record::{GroupId, Record};
use super::response::{
    DescribedGroup, DescribedMember, Effect, GroupKind, GroupState, ListedGroup, Response,
};
use super::turn::Purpose;
use crate::limits;
use crate::protocol::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

impl GroupMachine {
    /// Which groups there are.
    pub(crate) fn handle_list_groups(
        &mut self,
        _at: Moment,
        list: &ListGroups,
        effects: &mut Vec<Effect>,
    ) {
        let only_offsets = self.saved.iter().map(|(id, _)| (id, None));
        let mut all: BTreeMap<&GroupId, Option<&Group>> = only_offsets.collect();
        all.extend(self.groups.iter().map(|(id, group)| (id, Some(group))));
        let listed = all.into_iter().map(|(id, group)| ListedGroup {
            group: id.clone(),
            protocol_type: group.and_then(|g| g.protocol_type.clone()).unwrap_or_default(),
            state: group.map_or(GroupState::Empty, Group::state),
            kind: GroupKind::Classic,
        });
        let rows = listed.filter(|row| list.wants(row)).collect();
        let response = Response::ListGroups(rows);
        effects.push(Effect::Reply { ticket: list.ticket, response });
    }

    /// All about one group.
    pub(crate) fn handle_describe_group(
        &mut self,
        _at: Moment,
        describe: &DescribeGroup,
        effects: &mut Vec<Effect>,
    ) {
        let described = match (self.groups.get(&describe.group), self.saved.get(&describe.group)) {
            (Some(group), _) => Ok(group.describe()),
            (None, Some(_)) => Ok(DescribedGroup {
                state: GroupState::Empty,
                protocol_type: Arc::default(),
                protocol: Arc::default(),
                members: Vec::new(),
            }),
            (None, None) => Err(ErrorCode::GroupIdNotFound),
        };
        let response = Response::DescribeGroup(described);
        effects.push(Effect::Reply { ticket: describe.ticket, response });
    }

    /// A group shall be gone, with its offsets. Only one without members may.
    pub(crate) fn handle_delete_group(
        &mut self,
        at: Moment,
        delete: DeleteGroup,
        effects: &mut Vec<Effect>,
    ) {
        let DeleteGroup { ticket, group } = delete;
        let error = match self.groups.get(&group).map(|group| &group.phase) {
            Some(Phase::Empty) => ErrorCode::None,
            Some(Phase::Preparing { .. } | Phase::Completing { .. } | Phase::Stable { .. }) => {
                ErrorCode::NonEmptyGroup
            }
            None if self.saved.get(&group).is_some() => ErrorCode::None,
            None => ErrorCode::GroupIdNotFound,
        };
        if error != ErrorCode::None {
            let response = Response::DeleteGroup(error);
            return effects.push(Effect::Reply { ticket, response });
        }
        self.delete_next(at, ticket, group, effects);
    }

    /// Deletes as much as fits one append, the group itself last, and answers when nothing is left.
    pub(super) fn delete_next(
        &mut self,
        at: Moment,
        ticket: Ticket,
        group: GroupId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(saved) = self.saved.get(&group) else {
            self.forget(&group);
            let response = Response::DeleteGroup(ErrorCode::None);
            return effects.push(Effect::Reply { ticket, response });
        };
        let offsets = saved.offsets.keys().take(limits::GROUP_TOMBSTONES_PER_APPEND);
        let mut records: Vec<Record> = offsets
            .map(|partition| Record::OffsetTombstone {
                group: group.clone(),
                partition: partition.clone(),
            })
            .collect();
        if records.len() == saved.offsets.len() && saved.metadata.is_some() {
            records.push(Record::GroupTombstone { group: group.clone() });
        }
        let (_, mut turn) = self.resume(at, effects);
        turn.append(records, Purpose::Delete { ticket, group });
    }
}

impl ListGroups {
    fn wants(&self, row: &ListedGroup) -> bool {
        let named = |filter: &[String], name: &str| {
            filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
        };
        named(&self.states, row.state.name()) && named(&self.types, row.kind.name())
    }
}

impl Group {
    fn describe(&self) -> DescribedGroup {
        // Between generations neither what was said nor what was assigned holds.
        let stable = matches!(self.phase, Phase::Stable { .. });
        let protocol = self.protocol.clone().filter(|_| stable).unwrap_or_default();
        let described = |member: &Member| DescribedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            metadata: member.metadata(&protocol).unwrap_or_default(),
            assignment: if stable { member.assignment.clone() } else { Arc::from([]) },
        };
        DescribedGroup {
            state: self.state(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            members: self.members.iter().map(described).collect(),
            protocol,
        }
    }
}
