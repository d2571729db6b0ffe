//! SyncGroup, v0–5. The leader brings the assignments, every member gets its own.
//! v3: static members (KIP-345). v4: flexible. v5: protocol type and name, checked if given.

use super::group::{claim, group, text, wire};
use super::{Client, Request};
use crate::broker::coordinator::Event;
use crate::machine::group::{Response, SyncGroup};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use std::sync::Arc;

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: SyncGroupRequest,
) -> SyncGroupResponse {
    let id = group(&body.group_id);
    let asked = client.context.broker.groups.ask(&id, |ticket| {
        let member = claim(&body.member_id, body.group_instance_id.as_ref(), body.generation_id);
        Event::Sync(SyncGroup {
            ticket,
            group: id.clone(),
            member,
            protocol_type: body.protocol_type.as_ref().map(text),
            protocol: body.protocol_name.as_ref().map(text),
            assignments: body
                .assignments
                .iter()
                .map(|row| (text(&row.member_id), Arc::from(&*row.assignment)))
                .collect(),
        })
    });
    let asked = asked.await;
    let code = match asked {
        Ok(Response::SyncGroup(synced)) => {
            let mut response = SyncGroupResponse::default()
                .with_error_code(synced.error.code())
                .with_assignment(bytes::Bytes::copy_from_slice(&synced.assignment));
            if request.version >= 5 {
                response.protocol_type = synced.protocol_type.as_deref().map(wire);
                response.protocol_name = synced.protocol.as_deref().map(wire);
            }
            return response;
        }
        Ok(_) => ErrorCode::UnknownServerError,
        Err(code) => code,
    };
    SyncGroupResponse::default().with_error_code(code.code())
}
