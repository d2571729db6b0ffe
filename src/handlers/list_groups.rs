//! ListGroups, v0–5. All groups of this broker.
//! v3: flexible. v4: states, also to filter by (KIP-518). v5: types (KIP-848).

use super::group::wire;
use super::{Client, Request};
use crate::broker::coordinator::Event;
use crate::machine::group::{ListGroups, Response};
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{GroupId, ListGroupsRequest, ListGroupsResponse};

pub(super) async fn handle(
    client: &Client,
    request: &Request,
    body: ListGroupsRequest,
) -> ListGroupsResponse {
    let states: Vec<_> = body.states_filter.iter().map(ToString::to_string).collect();
    let types: Vec<_> = body.types_filter.iter().map(ToString::to_string).collect();
    drop(body);
    let event = |ticket| {
        let (states, types) = (states.clone(), types.clone());
        Event::List(ListGroups { ticket, states, types })
    };
    let mut groups = Vec::new();
    match client.context.broker.groups.ask_all(event).await {
        Err(code) => return ListGroupsResponse::default().with_error_code(code.code()),
        Ok(responses) => {
            for response in responses {
                if let Response::ListGroups(listed) = response {
                    groups.extend(listed);
                }
            }
        }
    }
    let rows = groups.iter().map(|group| {
        let mut row = ListedGroup::default()
            .with_group_id(GroupId(wire(&group.group)))
            .with_protocol_type(wire(&group.protocol_type));
        if request.version >= 4 {
            row.group_state = wire(group.state.name());
        }
        if request.version >= 5 {
            row.group_type = wire(group.kind.name());
        }
        row
    });
    ListGroupsResponse::default().with_groups(rows.collect())
}
