//! What DescribeConfigs answers (KIP-226, KIP-569): every key with its value, where the value is
//! from, and which other places would say one.

use super::Loaded;
use super::dynamic::Dynamic;
use super::layers::{Layers, Overrides};
use super::shape::Kind;
use super::table::{self, Change, Key};
use std::collections::BTreeSet;

/// Where a value is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    /// The topic's own.
    Topic,
    /// Set on this broker while it runs.
    DynamicBroker,
    /// Set on all brokers while they run.
    DynamicCluster,
    /// Set before the start.
    Static,
    /// Set nowhere.
    Default,
}

impl ConfigSource {
    /// The number in DescribeConfigs.
    #[must_use]
    pub(crate) fn code(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::DynamicBroker => 2,
            Self::DynamicCluster => 3,
            Self::Static => 4,
            Self::Default => 5,
        }
    }
}

/// One key of a topic or broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) name: String,
    /// `None` where there is no value, and where it is not to be seen.
    pub(crate) value: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) source: ConfigSource,
    /// Whether it is a password, or a key nobody knows.
    pub(crate) sensitive: bool,
    pub(crate) synonyms: Vec<Synonym>,
    /// The type's number; 0 for a key nobody knows.
    pub(crate) config_type: i8,
    pub(crate) documentation: Option<&'static str>,
}

/// A value that a key has, or would have if those before it were not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synonym {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) source: ConfigSource,
}

impl Loaded {
    /// A topic's keys, those asked for or all, by name.
    pub(crate) fn describe_topic(
        &self,
        dynamic: Dynamic<'_>,
        overrides: &Overrides,
        asked: &[&str],
    ) -> Vec<Described> {
        let layers = self.layers(dynamic);
        let mut keys: Vec<_> = table::topic_keys().filter(|key| wanted(asked, key.name)).collect();
        keys.sort_by_key(|key| key.name);
        keys.into_iter().map(|key| describe_topic_key(&layers, overrides, key)).collect()
    }

    /// A broker's keys, those asked for or all, by name.
    pub(crate) fn describe_broker(&self, dynamic: Dynamic<'_>, asked: &[&str]) -> Vec<Described> {
        let layers = self.layers(dynamic);
        let listed = table::broker_keys().filter(|key| key.listed).map(|key| key.name);
        let set = [layers.broker.keys(), layers.cluster.keys()].into_iter().flatten();
        let mut names: BTreeSet<&str> = set.chain(layers.set.keys()).map(String::as_str).collect();
        names.extend(listed);
        let names = names.into_iter().filter(|name| wanted(asked, name));
        names.map(|name| describe_broker_key(&layers, name)).collect()
    }

    /// What is set on all brokers while they run, of the keys asked for, by name.
    pub(crate) fn describe_cluster(&self, dynamic: Dynamic<'_>, asked: &[&str]) -> Vec<Described> {
        let layers = self.layers(dynamic);
        let set = layers.cluster.iter().filter(|(name, _)| wanted(asked, name));
        set.map(|(name, value)| {
            let mut described = describe_broker_key(&layers, name);
            described.value = (!described.sensitive).then(|| value.clone());
            described.synonyms.retain(|synonym| synonym.source == ConfigSource::DynamicCluster);
            described.source = ConfigSource::DynamicCluster;
            described
        })
        .collect()
    }
}

fn wanted(asked: &[&str], name: &str) -> bool {
    asked.is_empty() || asked.contains(&name)
}

fn describe_topic_key(layers: &Layers<'_>, overrides: &Overrides, key: &Key) -> Described {
    let own = overrides.get(key.name).and_then(|value| key.shape.canonical(key.name, value).ok());
    let source = ConfigSource::Topic;
    let own_synonym = own.clone().map(|value| synonym(key.name, Some(value), source));
    // The first of the broker's keys stands for the others, as long as it is set itself.
    let brokers = table::topic_sources(key.name).first();
    let brokers = brokers.map(|(name, _)| synonyms(layers, name, false)).unwrap_or_default();
    let synonyms: Vec<_> = own_synonym.into_iter().chain(brokers).collect();
    Described {
        name: key.name.to_owned(),
        value: own.or_else(|| layers.topic_value(key.name)),
        read_only: false,
        source: synonyms.first().map_or(ConfigSource::Default, |first| first.source),
        sensitive: false,
        synonyms,
        config_type: key.shape.kind.code(),
        documentation: Some(key.documentation),
    }
}

fn describe_broker_key(layers: &Layers<'_>, name: &str) -> Described {
    let own = table::broker_key(name);
    let key = own.or_else(|| table::broker_key(table::of_listener(name)?));
    let kind = key.map(|key| key.shape.kind);
    let sensitive = kind.is_none_or(|kind| kind == Kind::Password);
    let synonyms = synonyms(layers, name, sensitive);
    let value = match own {
        Some(_) => layers.value(name),
        None => synonyms.first().and_then(|first| first.value.clone()),
    };
    Described {
        name: name.to_owned(),
        value: value.filter(|_| !sensitive),
        read_only: own.is_none_or(|key| key.change == Change::Never),
        source: synonyms.first().map_or(ConfigSource::Default, |first| first.source),
        sensitive,
        synonyms,
        config_type: kind.map_or(0, Kind::code),
        // Kafka has none for what exists only while the broker runs.
        documentation: own.map(|key| key.documentation),
    }
}

/// Every place that says a value for a broker's key, the one that counts first. What stands before
/// the key's own name is left out: it is another key's value.
fn synonyms(layers: &Layers<'_>, name: &str, sensitive: bool) -> Vec<Synonym> {
    let names = table::same_setting(name);
    let mut found = Vec::new();
    for (of, source) in [
        (layers.broker, ConfigSource::DynamicBroker),
        (layers.cluster, ConfigSource::DynamicCluster),
    ] {
        let set = names.iter().filter_map(|name| Some((*name, of.get(*name)?)));
        let changed = set.filter(|(name, value)| counts(name, value));
        found.extend(changed.map(|(name, value)| synonym(name, Some(value.clone()), source)));
    }
    for name in &names {
        if let Some(setting) = layers.set.get(*name) {
            found.push(synonym(name, Some(setting.value.clone()), ConfigSource::Static));
        }
    }
    for name in &names {
        if let Some(default) = table::broker_key(name).and_then(|key| key.shape.default) {
            found.push(synonym(name, Some(default.to_owned()), ConfigSource::Default));
        }
    }
    if sensitive {
        found.iter_mut().for_each(|synonym| synonym.value = None);
    }
    found.into_iter().skip_while(|synonym| synonym.name != name).collect()
}

/// Whether a stored dynamic value is one that the settings in force are made of.
fn counts(name: &str, value: &str) -> bool {
    table::broker_key(name)
        .is_none_or(|key| key.change != Change::Never && key.shape.canonical(name, value).is_ok())
}

fn synonym(name: &str, value: Option<String>, source: ConfigSource) -> Synonym {
    Synonym { name: name.to_owned(), value, source }
}
