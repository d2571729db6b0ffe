//! FindCoordinator, v0–6. Which broker coordinates a group.
//! v1: key types, and an error message. v3: flexible. v4: several keys (KIP-699).
//! v6: share groups' keys, which are refused, as are transactional ids: neither is offered.
//! The first call makes `__consumer_offsets`.

use super::{Client, Request};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

/// The key type of groups.
const GROUP: i8 = 0;

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let ready = if body.key_type == GROUP {
        client.context.broker.ensure_offsets_topic().await
    } else {
        Err(ErrorCode::InvalidRequest)
    };
    if request.version < 4 {
        let row = find(client, &body.key, ready);
        let mut response = FindCoordinatorResponse::default()
            .with_error_code(row.error_code)
            .with_node_id(row.node_id)
            .with_host(row.host)
            .with_port(row.port);
        if request.version >= 1 {
            response.error_message = row.error_message;
        }
        return response;
    }
    let rows = body.coordinator_keys.iter().map(|key| find(client, key, ready)).collect();
    FindCoordinatorResponse::default().with_coordinators(rows)
}

fn find(client: &Client, key: &StrBytes, ready: Result<(), ErrorCode>) -> Coordinator {
    let broker = &client.context.broker;
    let endpoint = broker.endpoint(&client.context.listener);
    let row = Coordinator::default().with_key(key.clone());
    match (ready, endpoint) {
        (Ok(()), Some(endpoint)) => row
            .with_node_id(BrokerId(broker.node.0))
            .with_host(StrBytes::from_string(endpoint.host.clone()))
            .with_port(i32::from(endpoint.port))
            .with_error_message(Some(StrBytes::from_static_str("NONE"))),
        (failed, _) => {
            let code = failed.err().unwrap_or(ErrorCode::CoordinatorNotAvailable);
            row.with_error_code(code.code())
                .with_node_id(BrokerId(-1))
                .with_port(-1)
                .with_error_message(Some(StrBytes::from_string(format!("{code:?}"))))
        }
    }
}
