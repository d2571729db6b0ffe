//! LeaveGroup, v0–5. Members go, and the others rebalance.
//! v3: several members, static ones by their instance id (KIP-345). v4: flexible. v5: a reason.

use super::group::{group, text, wire};
use super::{Client, Request};
use crate::broker::coordinator::Event;
use crate::machine::group::{LeaveGroup, Leaver, Left, Response};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: LeaveGroupRequest,
) -> LeaveGroupResponse {
    let id = group(&body.group_id);
    let members: Vec<_> = if request.version < 3 {
        vec![Leaver { member_id: text(&body.member_id), instance_id: None }]
    } else {
        body.members
            .iter()
            .map(|member| Leaver {
                member_id: text(&member.member_id),
                instance_id: member.group_instance_id.as_ref().map(text),
            })
            .collect()
    };
    drop(body);
    let asked = client
        .context
        .broker
        .groups
        .ask(&id, |ticket| Event::Leave(LeaveGroup { ticket, group: id.clone(), members }));
    match asked.await {
        Ok(Response::LeaveGroup(left)) => answer(request.version, &left),
        Ok(_) => failed(ErrorCode::UnknownServerError),
        Err(code) => failed(code),
    }
}

fn answer(version: i16, left: &Left) -> LeaveGroupResponse {
    if version < 3 {
        // One code for the request and its only member.
        let member = left.members.first().map_or(ErrorCode::None, |(_, code)| *code);
        return failed(if left.error == ErrorCode::None { member } else { left.error });
    }
    let members = left.members.iter().map(|(leaver, code)| {
        MemberResponse::default()
            .with_member_id(wire(&leaver.member_id))
            .with_group_instance_id(leaver.instance_id.as_deref().map(wire))
            .with_error_code(code.code())
    });
    failed(left.error).with_members(members.collect())
}

fn failed(code: ErrorCode) -> LeaveGroupResponse {
    LeaveGroupResponse::default().with_error_code(code.code())
}
