//! Heartbeat, v0–4. Keeps a member alive; tells it when a rebalance has begun.
//! v3: group_instance_id fences static members (KIP-345). v4: flexible.
//! Order of refusal: group id, coordinator loaded, member, generation.

use super::Client;
use super::group::{claim, group};
use crate::broker::coordinator::Event;
use crate::machine::group::{Heartbeat, Response};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

pub(super) async fn handle(client: &Client, body: HeartbeatRequest) -> HeartbeatResponse {
    let id = group(&body.group_id);
    let member = claim(&body.member_id, body.group_instance_id.as_ref(), body.generation_id);
    drop(body);
    let asked = client
        .context
        .broker
        .groups
        .ask(&id, |ticket| Event::Heartbeat(Heartbeat { ticket, group: id.clone(), member }));
    let code = match asked.await {
        Ok(Response::Heartbeat(code)) | Err(code) => code,
        Ok(_) => ErrorCode::UnknownServerError,
    };
    HeartbeatResponse::default().with_error_code(code.code())
}
