//! DeleteGroups, v0–2. Groups without members go, with their offsets. v2: flexible.

use super::Client;
use super::group::{group, wire};
use crate::broker::coordinator::Event;
use crate::machine::group::{DeleteGroup, Response};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse, GroupId};

pub(super) async fn handle(client: &Client, body: DeleteGroupsRequest) -> DeleteGroupsResponse {
    let ids: Vec<_> = body.groups_names.iter().map(group).collect();
    drop(body);
    let mut response = DeleteGroupsResponse::default();
    for id in ids {
        let event = |ticket| Event::Delete(DeleteGroup { ticket, group: id.clone() });
        let code = match client.context.broker.groups.ask(&id, event).await {
            Ok(Response::DeleteGroup(code)) | Err(code) => code,
            Ok(_) => ErrorCode::UnknownServerError,
        };
        let row = DeletableGroupResult::default()
            .with_group_id(GroupId(wire(&id)))
            .with_error_code(code.code());
        response.results.push(row);
    }
    response
}
