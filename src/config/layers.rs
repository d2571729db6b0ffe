//! A key's value where several places may say one.

use super::load::Setting;
use super::table::{self, Change};
use std::collections::BTreeMap;

/// Dynamic settings, as AlterConfigs stores them.
pub(crate) type Overrides = BTreeMap<String, String>;

/// Where values are looked for: this broker's dynamic ones, those of all brokers, those it was
/// started with, and the table's defaults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers<'a> {
    pub(super) broker: &'a Overrides,
    pub(super) cluster: &'a Overrides,
    pub(super) set: &'a BTreeMap<String, Setting>,
}

/// Nothing set while the broker runs.
pub(super) const NONE: &Overrides = &BTreeMap::new();

impl Layers<'_> {
    /// The value in force as Kafka prints it; `None` where it is Kafka's `null`.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        let key = table::broker_key(name)?;
        let dynamic = || [self.broker, self.cluster].into_iter().filter_map(|of| of.get(name));
        let usable = |value: &String| key.shape.canonical(name, value).ok();
        // What the store holds for a key that is read at the start only counts nowhere.
        let changed = if key.change == Change::Never { None } else { dynamic().find_map(usable) };
        changed
            .or_else(|| usable(&self.set.get(name)?.value))
            .or_else(|| key.shape.default.map(str::to_owned))
    }

    /// A value the table gives a default.
    pub(super) fn text(&self, name: &str) -> String {
        self.value(name).unwrap_or_default()
    }

    /// Whether a boolean is true.
    pub(super) fn is(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// A number, where there is one.
    pub(super) fn whole(&self, name: &str) -> Option<i64> {
        self.value(name).and_then(|value| value.parse().ok())
    }

    /// A number whose bounds and default the table has.
    pub(super) fn number<T: TryFrom<i64>>(&self, name: &str) -> T {
        let number = self.whole(name).and_then(|number| T::try_from(number).ok());
        number.unwrap_or_else(|| panic!("the table bounds {name}"))
    }

    /// What a topic without settings of its own has for a topic's key.
    pub(super) fn topic_value(&self, name: &str) -> Option<String> {
        for (source, unit_ms) in table::topic_sources(name) {
            let Some(value) = self.value(source) else { continue };
            return Some(match value.parse::<i64>() {
                // However negative, Kafka reads it as "for ever".
                Ok(..0) if name == "retention.ms" => "-1".to_owned(),
                Ok(number) => number.saturating_mul(*unit_ms).to_string(),
                Err(_) => value,
            });
        }
        table::topic_key(name)?.shape.default.map(str::to_owned)
    }
}
