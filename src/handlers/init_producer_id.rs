//! InitProducerId, v0–5. Gives a producer its id (KIP-98).
//! v2: flexible. v3: the producer's former id and epoch (KIP-360). v4: PRODUCER_FENCED.
//! v5: KIP-890.
//! A producer without a transactional id gets a new id each time, epoch 0. Transactions are not
//! offered: with a transactional id the answer is an error.

use super::Client;
use crate::protocol::ErrorCode;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

pub(super) async fn handle(
    client: &Client,
    body: &InitProducerIdRequest,
) -> InitProducerIdResponse {
    if let Some(transactional_id) = &body.transactional_id {
        // Kafka refuses an empty id the same way; a broker without transactions has no coordinator
        // for any other.
        let code = if transactional_id.is_empty() {
            ErrorCode::InvalidRequest
        } else {
            ErrorCode::TransactionalIdAuthorizationFailed
        };
        return refused(code);
    }
    match client.context.broker.controller.next_producer_id().await {
        Ok(id) => InitProducerIdResponse::default()
            .with_producer_id(ProducerId(id.0))
            .with_producer_epoch(0),
        Err(refusal) => refused(refusal.code),
    }
}

fn refused(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_error_code(code.code())
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1)
}
