//! What the APIs of settings share: which resource is meant, and how a change is made.

use super::Client;
use crate::broker::settings::{ALL_BROKERS, dynamic};
use crate::config::{Level, Overrides, why_fixed};
use crate::machine::controller::{Change, Picture, Refusal};
use crate::protocol::ErrorCode;
use crate::types::topic_name_fault;
use kafka_protocol::protocol::StrBytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What has settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// A topic, which is there.
    Topic(Arc<str>),
    /// All brokers.
    Cluster,
    /// This broker.
    Broker,
    /// This broker's loggers.
    Loggers,
}

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const BROKER_LOGGER: i8 = 8;

/// Whether one of a request's resources stands there twice.
pub(super) fn is_named_twice<'a>(
    resources: impl Iterator<Item = (i8, &'a StrBytes)>,
    one: (i8, &StrBytes),
) -> bool {
    resources.filter(|resource| *resource == one).count() > 1
}

/// Which resource a request means, if there is one.
pub(super) fn resource(client: &Client, kind: i8, name: &str) -> Result<Resource, Refusal> {
    let broker = &client.context.broker;
    let invalid = |message| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    match kind {
        TOPIC => {
            if let Some(fault) = topic_name_fault(name) {
                return Err(Refusal::new(ErrorCode::InvalidTopicException, fault));
            }
            let known = broker.metadata.look().topics.get(name).map(|topic| topic.name.clone());
            let unknown = || {
                let message = "This server does not host this topic-partition.";
                Refusal::new(ErrorCode::UnknownTopicOrPartition, message)
            };
            known.map(Resource::Topic).ok_or_else(unknown)
        }
        BROKER if name.is_empty() => Ok(Resource::Cluster),
        BROKER if name == broker.node.to_string() => Ok(Resource::Broker),
        BROKER => invalid(format!(
            "Unexpected broker id, expected {} or empty string, but received {name}",
            broker.node
        )),
        BROKER_LOGGER if name == broker.node.to_string() => Ok(Resource::Loggers),
        BROKER_LOGGER => {
            invalid(format!("Unexpected broker id, expected {} but received {name}", broker.node))
        }
        other => invalid(format!("Unsupported resource type: {other}")),
    }
}

/// Changes the settings of a topic or of brokers to what `change` makes of those set now; with
/// `dry` they are only checked. Loggers are not changed here.
pub(super) async fn alter(
    client: &Client,
    resource: &Resource,
    dry: bool,
    change: impl Fn(&Overrides) -> Result<Overrides, Refusal>,
) -> Result<(), Refusal> {
    let broker = &client.context.broker;
    let plan = |picture: &Picture| {
        let now = current(client, picture, resource);
        let then = change(&now)?;
        check(client, picture, resource, &then)?;
        Ok(as_change(client, resource, then))
    };
    if dry {
        return plan(&broker.picture()).map(|_| ());
    }
    let picture = broker.controller.alter(plan).await?;
    match resource {
        Resource::Topic(name) => {
            if let Some(topic) = picture.topics.get(name) {
                broker.apply_topic_settings(topic);
            }
        }
        Resource::Cluster | Resource::Broker => broker.apply_broker_settings(&picture),
        Resource::Loggers => {}
    }
    Ok(())
}

/// What is set on the resource itself.
fn current(client: &Client, picture: &Picture, resource: &Resource) -> Overrides {
    let of_broker = |name: &str| picture.broker_configs.get(name).cloned().unwrap_or_default();
    match resource {
        Resource::Topic(name) => {
            picture.topics.get(name).map(|topic| topic.overrides.clone()).unwrap_or_default()
        }
        Resource::Cluster => of_broker(ALL_BROKERS),
        Resource::Broker => of_broker(&client.context.broker.node.to_string()),
        Resource::Loggers => BTreeMap::new(),
    }
}

fn check(
    client: &Client,
    picture: &Picture,
    resource: &Resource,
    then: &Overrides,
) -> Result<(), Refusal> {
    let broker = &client.context.broker;
    let node = broker.node.to_string();
    let level = match resource {
        Resource::Topic(_) => return broker.topic_config(then).map(|_| ()),
        Resource::Cluster => Level::Cluster,
        Resource::Broker => Level::Broker,
        Resource::Loggers => return Ok(()),
    };
    if let Some(fixed) = then.keys().find_map(|name| why_fixed(name)) {
        return Err(Refusal::new(ErrorCode::InvalidRequest, fixed));
    }
    let now = dynamic(picture, &node);
    let checked = broker.settings.loaded().check_dynamic(now, level, then);
    checked.map_err(|fault| Refusal::new(ErrorCode::InvalidConfig, fault))
}

fn as_change(client: &Client, resource: &Resource, overrides: Overrides) -> Change {
    let broker = match resource {
        Resource::Topic(name) => return Change::SetTopicConfig { name: name.clone(), overrides },
        Resource::Cluster | Resource::Loggers => ALL_BROKERS.to_owned(),
        Resource::Broker => client.context.broker.node.to_string(),
    };
    Change::SetBrokerConfig { broker, overrides }
}
