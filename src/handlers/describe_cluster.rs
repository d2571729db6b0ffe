//! DescribeCluster, v0–2. The cluster's id and brokers (KIP-700).
//! v1: endpoint type (KIP-919). v2: fenced brokers (KIP-1073).

use super::{Client, Request, operations};
use crate::protocol::ErrorCode;
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub(super) fn handle(
    client: &Client,
    request: &Request,
    body: &DescribeClusterRequest,
) -> DescribeClusterResponse {
    let broker = &client.context.broker;
    let mut response = DescribeClusterResponse::default()
        .with_cluster_authorized_operations(operations::of_cluster(
            body.include_cluster_authorized_operations,
        ))
        .with_controller_id(BrokerId(-1));
    if request.version >= 1 {
        let code = match body.endpoint_type {
            BROKERS => ErrorCode::None,
            CONTROLLERS => ErrorCode::MismatchedEndpointType,
            _other => ErrorCode::UnsupportedEndpointType,
        };
        if code != ErrorCode::None {
            response.error_code = code.code();
            response.error_message =
                Some(StrBytes::from_static_str("This broker answers for brokers only."));
            return response;
        }
        response.endpoint_type = BROKERS;
    }
    let node = BrokerId(broker.node.0);
    response.cluster_id = StrBytes::from_string(broker.cluster_id.clone());
    response.controller_id = node;
    if let Some(endpoint) = broker.endpoint(&client.context.listener) {
        let rack = broker.config.rack.clone().map(StrBytes::from_string);
        response.brokers.push(
            DescribeClusterBroker::default()
                .with_broker_id(node)
                .with_host(StrBytes::from_string(endpoint.host.clone()))
                .with_port(i32::from(endpoint.port))
                .with_rack(rack),
        );
    }
    response
}
