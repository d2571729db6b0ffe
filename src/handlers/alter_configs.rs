//! AlterConfigs, v0–2. Puts settings in place of all that were set on a resource. v2: flexible.
//! Order of refusal, per resource: named twice, its name, existence, settings.

use super::configs::{Resource, alter, is_named_twice, resource};
use super::{Client, respond};
use crate::machine::controller::Refusal;
use crate::protocol::ErrorCode;
use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use std::collections::BTreeMap;

pub(super) async fn handle(client: &Client, body: AlterConfigsRequest) -> AlterConfigsResponse {
    let mut response = AlterConfigsResponse::default();
    for asked in &body.resources {
        let names = body.resources.iter().map(|other| (other.resource_type, &other.resource_name));
        let result = if is_named_twice(names, (asked.resource_type, &asked.resource_name)) {
            Err(Refusal::new(ErrorCode::InvalidRequest, "a resource is named twice"))
        } else {
            replace(client, asked, body.validate_only).await
        };
        let row = AlterConfigsResourceResponse::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name.clone());
        response.responses.push(match result {
            Ok(()) => row,
            Err(refusal) => row
                .with_error_code(refusal.code.code())
                .with_error_message(respond::message(refusal.message)),
        });
    }
    response
}

async fn replace(client: &Client, asked: &AlterConfigsResource, dry: bool) -> Result<(), Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let resource = resource(client, asked.resource_type, &asked.resource_name)?;
    if resource == Resource::Loggers {
        return invalid("loggers are changed by IncrementalAlterConfigs only".to_owned());
    }
    let mut overrides = BTreeMap::new();
    for config in &asked.configs {
        let Some(value) = &config.value else {
            return invalid(format!("Null value not supported for : {}", &*config.name));
        };
        if overrides.insert(config.name.to_string(), value.to_string()).is_some() {
            return invalid(format!("{} is set twice", &*config.name));
        }
    }
    alter(client, &resource, dry, |_| Ok(overrides.clone())).await
}
