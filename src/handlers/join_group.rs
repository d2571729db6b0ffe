//! JoinGroup, v0–9. A member joins a rebalance; the answer comes when all have, or time is up.
//! v1: rebalance timeout (v0 takes the session timeout, KAFKA-8653). v4: an id is given first
//! (KIP-394). v5: static members (KIP-345). v6: flexible. v7: protocol type and name. v8: a reason.
//! v9: a static leader may skip the assignment (KIP-814).
//! Order of refusal: group id, coordinator, session timeout, member, protocol.

use super::group::{group, text, wire};
use super::{Client, Request};
use crate::broker::coordinator::Event;
use crate::machine::group::{JoinGroup, Joined, Protocol, Response};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: JoinGroupRequest,
) -> JoinGroupResponse {
    let broker = &client.context.broker;
    let id = group(&body.group_id);
    let asked = broker
        .groups
        .ask(&id, |ticket| {
            Event::Join(JoinGroup {
                ticket,
                group: id.clone(),
                member_id: text(&body.member_id),
                instance_id: body.group_instance_id.as_ref().map(text),
                client_id: Arc::from(request.client_id.as_deref().unwrap_or_default()),
                client_host: Arc::from(format!("/{}", client.peer.ip().to_canonical())),
                unique: Arc::from(broker.fresh_id().to_string()),
                session_timeout: span(body.session_timeout_ms),
                rebalance_timeout: (request.version > 0).then(|| span(body.rebalance_timeout_ms)),
                protocol_type: text(&body.protocol_type),
                protocols: body
                    .protocols
                    .iter()
                    .map(|offered| Protocol {
                        name: text(&offered.name),
                        metadata: Arc::from(&*offered.metadata),
                    })
                    .collect(),
                takes_member_id_first: request.version >= 4,
                can_skip_assignment: request.version >= 9,
            })
        })
        .await;
    let member_id = body.member_id.to_string();
    drop(body);
    match asked {
        Ok(Response::JoinGroup(joined)) => answer(request.version, joined),
        Ok(_) => failed(request.version, &member_id, ErrorCode::UnknownServerError),
        Err(code) => failed(request.version, &member_id, code),
    }
}

/// A negative time is none.
fn span(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

fn answer(version: i16, joined: Joined) -> JoinGroupResponse {
    let members = joined.members.iter().map(|member| {
        let mut row = JoinGroupResponseMember::default()
            .with_member_id(wire(&member.member_id))
            .with_metadata(bytes::Bytes::copy_from_slice(&member.metadata));
        if version >= 5 {
            row.group_instance_id = member.instance_id.as_deref().map(wire);
        }
        row
    });
    let mut response = JoinGroupResponse::default()
        .with_error_code(joined.error.code())
        .with_generation_id(joined.generation.0)
        .with_protocol_name(protocol_name(version, joined.protocol.as_deref()))
        .with_leader(wire(&joined.leader))
        .with_member_id(wire(&joined.member_id))
        .with_members(members.collect());
    if version >= 7 {
        response.protocol_type = joined.protocol_type.as_deref().map(wire);
    }
    if version >= 9 {
        response.skip_assignment = joined.skip_assignment;
    }
    response
}

/// Before version 7 the name cannot be null.
fn protocol_name(version: i16, name: Option<&str>) -> Option<StrBytes> {
    match name {
        None if version < 7 => Some(StrBytes::default()),
        name => name.map(wire),
    }
}

fn failed(version: i16, member_id: &str, code: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse::default()
        .with_error_code(code.code())
        .with_generation_id(-1)
        .with_protocol_name(protocol_name(version, None))
        .with_member_id(wire(member_id))
}
