//! DescribeConfigs, v1–4. Settings of topics, brokers and loggers, with where they come from.
//! v1: sources and synonyms (KIP-226). v3: types and documentation (KIP-569). v4: flexible.
//! Null or no keys asks for all; of those asked for, the known ones are told (redpanda#1108).
//! Order of refusal, per resource: its name, existence.

use super::configs::{Resource, resource};
use super::{Client, Request, respond};
use crate::broker::settings::dynamic;
use crate::config::Described;
use crate::logging;
use crate::machine::controller::{Picture, Refusal};
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

/// The source of a logger's level, and its type in version 3.
const DYNAMIC_BROKER_LOGGER: i8 = 6;
const STRING: i8 = 2;

/// What the request wants beside names and values.
#[derive(Clone, Copy)]
struct Wants {
    version: i16,
    synonyms: bool,
    documentation: bool,
}

pub(super) fn handle(
    client: &Client,
    request: &Request,
    body: &DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let picture = client.context.broker.picture();
    let wants = Wants {
        version: request.version,
        synonyms: body.include_synonyms,
        documentation: body.include_documentation,
    };
    let results = body.resources.iter().map(|asked| {
        let result = DescribeConfigsResult::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name.clone());
        match describe(client, &picture, asked, wants) {
            Ok(configs) => result.with_configs(configs),
            Err(refusal) => result
                .with_error_code(refusal.code.code())
                .with_error_message(respond::message(refusal.message)),
        }
    });
    DescribeConfigsResponse::default().with_results(results.collect())
}

fn describe(
    client: &Client,
    picture: &Picture,
    asked: &DescribeConfigsResource,
    wants: Wants,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let keys: Vec<&str> = asked.configuration_keys.iter().flatten().map(|key| &**key).collect();
    let broker = &client.context.broker;
    let loaded = broker.settings.loaded();
    let node = broker.node.to_string();
    let dynamic = dynamic(picture, &node);
    let described = match resource(client, asked.resource_type, &asked.resource_name)? {
        Resource::Topic(name) => {
            let overrides = picture.topics.get(&name).map(|topic| topic.overrides.clone());
            loaded.describe_topic(dynamic, &overrides.unwrap_or_default(), &keys)
        }
        Resource::Cluster => loaded.describe_cluster(dynamic, &keys),
        Resource::Broker => loaded.describe_broker(dynamic, &keys),
        Resource::Loggers => return Ok(loggers(&keys, wants)),
    };
    Ok(described.into_iter().map(|described| row(described, wants)).collect())
}

fn row(described: Described, wants: Wants) -> DescribeConfigsResourceResult {
    let text = |text: Option<String>| text.map(StrBytes::from_string);
    let synonyms = described.synonyms.into_iter().filter(|_| wants.synonyms).map(|synonym| {
        DescribeConfigsSynonym::default()
            .with_name(StrBytes::from_string(synonym.name))
            .with_value(text(synonym.value))
            .with_source(synonym.source.code())
    });
    let mut row = DescribeConfigsResourceResult::default()
        .with_name(StrBytes::from_string(described.name))
        .with_value(text(described.value))
        .with_read_only(described.read_only)
        .with_config_source(described.source.code())
        .with_is_sensitive(described.sensitive)
        .with_synonyms(synonyms.collect());
    if wants.version >= 3 {
        row.config_type = described.config_type;
        row.documentation =
            described.documentation.filter(|_| wants.documentation).map(StrBytes::from_static_str);
    }
    row
}

fn loggers(keys: &[&str], wants: Wants) -> Vec<DescribeConfigsResourceResult> {
    let wanted = |name: &String| keys.is_empty() || keys.contains(&name.as_str());
    let levels = logging::levels().into_iter().filter(|(name, _)| wanted(name));
    let rows = levels.map(|(name, level)| {
        let mut row = DescribeConfigsResourceResult::default()
            .with_name(StrBytes::from_string(name))
            .with_value(Some(StrBytes::from_string(level)))
            .with_config_source(DYNAMIC_BROKER_LOGGER);
        if wants.version >= 3 {
            row.config_type = STRING;
        }
        row
    });
    rows.collect()
}
