//! IncrementalAlterConfigs, v0–1. Sets, removes, or changes lists in, single settings (KIP-339),
//! and loggers' levels (KIP-412). v1: flexible.
//! Order of refusal, per resource: named twice, its name, existence, operations, settings.

use super::configs::{Resource, alter, is_named_twice, resource};
use super::{Client, respond};
use crate::broker::settings::dynamic;
use crate::config::Overrides;
use crate::logging;
use crate::machine::controller::Refusal;
use crate::protocol::ErrorCode;
use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// The number of the type LIST.
const LIST: i8 = 7;

/// What is to be done with a setting.
#[derive(Clone, Debug)]
enum Operation {
    Set(String),
    Delete,
    Append(String),
    Subtract(String),
}

type Operations = Vec<(String, Operation)>;

pub(super) async fn handle(
    client: &Client,
    body: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let mut response = IncrementalAlterConfigsResponse::default();
    for asked in &body.resources {
        let names = body.resources.iter().map(|other| (other.resource_type, &other.resource_name));
        let result = if is_named_twice(names, (asked.resource_type, &asked.resource_name)) {
            Err(Refusal::new(ErrorCode::InvalidRequest, "a resource is named twice"))
        } else {
            change(client, asked, body.validate_only).await
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

async fn change(client: &Client, asked: &AlterConfigsResource, dry: bool) -> Result<(), Refusal> {
    let resource = resource(client, asked.resource_type, &asked.resource_name)?;
    let operations = operations(asked)?;
    if resource == Resource::Loggers {
        return change_loggers(&operations, dry);
    }
    alter(client, &resource, dry, |now| apply(client, &resource, now, &operations)).await
}

fn operations(asked: &AlterConfigsResource) -> Result<Operations, Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let mut operations: Operations = Vec::new();
    for config in &asked.configs {
        let name = config.name.to_string();
        if operations.iter().any(|(other, _)| *other == name) {
            return invalid(format!("{name} is changed twice"));
        }
        let value = config.value.as_ref().map(ToString::to_string);
        let operation = match (config.config_operation, value) {
            (DELETE, _) => Operation::Delete,
            (SET, Some(value)) => Operation::Set(value),
            (APPEND, Some(value)) => Operation::Append(value),
            (SUBTRACT, Some(value)) => Operation::Subtract(value),
            (SET | APPEND | SUBTRACT, None) => {
                return invalid(format!("Null value not supported for : {name}"));
            }
            (other, _) => return invalid(format!("Unknown operation {other}")),
        };
        operations.push((name, operation));
    }
    Ok(operations)
}

fn change_loggers(operations: &Operations, dry: bool) -> Result<(), Refusal> {
    let wrong = |code, message: String| Refusal::new(code, message);
    // All are checked before one is changed.
    for really in [false, true] {
        for (logger, operation) in operations {
            let level = match operation {
                Operation::Set(level) => Some(level.as_str()),
                Operation::Delete => None,
                Operation::Append(_) | Operation::Subtract(_) => {
                    let message = "a logger's level is no list".to_owned();
                    return Err(wrong(ErrorCode::InvalidRequest, message));
                }
            };
            let done = match (really, dry) {
                (false, _) => logging::check(logger, level),
                (true, false) => logging::set(logger, level),
                (true, true) => Ok(()),
            };
            done.map_err(|error| wrong(ErrorCode::InvalidConfig, error.to_string()))?;
        }
    }
    Ok(())
}

fn apply(
    client: &Client,
    resource: &Resource,
    now: &Overrides,
    operations: &Operations,
) -> Result<Overrides, Refusal> {
    let mut then = now.clone();
    for (name, operation) in operations {
        match operation {
            Operation::Set(value) => drop(then.insert(name.clone(), value.clone())),
            Operation::Delete => drop(then.remove(name)),
            Operation::Append(value) => {
                let mut list = list(client, resource, now, name)?;
                for item in split(value) {
                    if !list.contains(&item) {
                        list.push(item);
                    }
                }
                then.insert(name.clone(), list.join(","));
            }
            Operation::Subtract(value) => {
                let mut list = list(client, resource, now, name)?;
                let gone = split(value);
                list.retain(|item| !gone.contains(item));
                then.insert(name.clone(), list.join(","));
            }
        }
    }
    Ok(then)
}

/// A list's items as they hold now, set here or not.
fn list(
    client: &Client,
    resource: &Resource,
    now: &Overrides,
    name: &str,
) -> Result<Vec<String>, Refusal> {
    let broker = &client.context.broker;
    let picture = broker.picture();
    let node = broker.node.to_string();
    let (loaded, dynamic) = (broker.settings.loaded(), dynamic(&picture, &node));
    let described = match resource {
        Resource::Topic(_) => loaded.describe_topic(dynamic, now, &[name]),
        Resource::Cluster | Resource::Broker => loaded.describe_broker(dynamic, &[name]),
        Resource::Loggers => Vec::new(),
    };
    match described.first() {
        Some(described) if described.config_type == LIST => {
            Ok(split(described.value.as_deref().unwrap_or_default()))
        }
        Some(_) => {
            let message = format!("Can't append to or subtract from {name}: its type is not LIST.");
            Err(Refusal::new(ErrorCode::InvalidConfig, message))
        }
        None => {
            let message = format!("Unknown topic config name: {name}");
            Err(Refusal::new(ErrorCode::InvalidConfig, message))
        }
    }
}

fn split(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
