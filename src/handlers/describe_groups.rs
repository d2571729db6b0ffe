//! DescribeGroups, v0–6. Groups with their members.
//! v3: authorized operations. v4: static members (KIP-345). v5: flexible. v6: an unknown group is
//! GROUP_ID_NOT_FOUND with a message; before it is a group in state "Dead" (KIP-1043).

use super::group::{group, wire};
use super::{Client, Request, operations, respond};
use crate::broker::coordinator::Event;
use crate::machine::group::{DescribeGroup, DescribedGroup, Response};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::describe_groups_response::{
    DescribedGroup as Row, DescribedGroupMember,
};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId};

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: DescribeGroupsRequest,
) -> DescribeGroupsResponse {
    let operations = operations::of_group(body.include_authorized_operations);
    let ids: Vec<_> = body.groups.iter().map(group).collect();
    drop(body);
    let mut response = DescribeGroupsResponse::default();
    for id in ids {
        let event = |ticket| Event::Describe(DescribeGroup { ticket, group: id.clone() });
        let described = match client.context.broker.groups.ask(&id, event).await {
            Ok(Response::DescribeGroup(described)) => described,
            Ok(_) => Err(ErrorCode::UnknownServerError),
            Err(code) => Err(code),
        };
        let row =
            Row::default().with_group_id(GroupId(wire(&id))).with_authorized_operations(operations);
        response.groups.push(match described {
            Ok(described) => fill(request.version, row, &described),
            Err(ErrorCode::GroupIdNotFound) if request.version < 6 => {
                row.with_group_state(wire("Dead"))
            }
            Err(ErrorCode::GroupIdNotFound) => row
                .with_group_state(wire("Dead"))
                .with_error_code(ErrorCode::GroupIdNotFound.code())
                .with_error_message(respond::message(format!("Group {id} not found."))),
            Err(code) => row.with_error_code(code.code()),
        });
    }
    response
}

fn fill(version: i16, row: Row, described: &DescribedGroup) -> Row {
    let members = described.members.iter().map(|member| {
        let mut row = DescribedGroupMember::default()
            .with_member_id(wire(&member.member_id))
            .with_client_id(wire(&member.client_id))
            .with_client_host(wire(&member.client_host))
            .with_member_metadata(bytes::Bytes::copy_from_slice(&member.metadata))
            .with_member_assignment(bytes::Bytes::copy_from_slice(&member.assignment));
        if version >= 4 {
            row.group_instance_id = member.instance_id.as_deref().map(wire);
        }
        row
    });
    row.with_group_state(wire(described.state.name()))
        .with_protocol_type(wire(&described.protocol_type))
        .with_protocol_data(wire(&described.protocol))
        .with_members(members.collect())
}
