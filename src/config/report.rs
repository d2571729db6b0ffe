//! What `ottla config` prints.

use super::Loaded;
use super::layers::{Layers, NONE};
use super::shape::Kind;
use super::table::{self, Effect};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Each key with its value, where it was set, and whether Ottla goes by it.
#[must_use]
pub fn report(loaded: &Loaded) -> String {
    let layers = Layers { broker: NONE, cluster: NONE, set: &loaded.set };
    let mut names: BTreeSet<&str> = loaded.set.keys().map(String::as_str).collect();
    names.extend(table::broker_keys().filter(|key| key.listed).map(|key| key.name));
    let rows: Vec<_> = names.into_iter().map(|name| row(&layers, name)).collect();
    let width = |column: fn(&Row) -> &str| {
        // One long value must not push all the others aside.
        rows.iter().map(|row| column(row).chars().count()).filter(|width| *width <= 40).max()
    };
    let value_width = width(|row| &row.value).unwrap_or(0);
    let source_width = width(|row| &row.source).unwrap_or(0);
    let name_width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Row { name, value, source, effect } in &rows {
        let line = format!("{name:name_width$}  {value:value_width$}  {source:source_width$}  ");
        let _ = writeln!(text, "{line}{effect}");
    }
    text
}

struct Row {
    name: String,
    value: String,
    source: String,
    effect: String,
}

fn row(layers: &Layers<'_>, name: &str) -> Row {
    let key = table::broker_key(name);
    let setting = layers.set.get(name);
    let value = match key {
        Some(key) if key.shape.kind == Kind::Password && setting.is_some() => hidden(),
        Some(_) => layers.value(name).unwrap_or_else(|| "-".to_owned()),
        None => hidden(),
    };
    let effect = match key.map(|key| key.effect) {
        Some(Effect::Honoured) => "honoured".to_owned(),
        Some(Effect::Ignored(reason)) => format!("no effect: {reason}"),
        Some(Effect::Refused(reason)) => format!("only the default: {reason}"),
        None if table::of_listener(name).is_some() => {
            "no effect: settings of single listeners are not built yet".to_owned()
        }
        None => "unknown".to_owned(),
    };
    let source = setting.map_or("default".to_owned(), |setting| setting.source.to_string());
    Row { name: name.to_owned(), value, source, effect }
}

/// Nobody knows what an unknown key holds; it may be a password.
fn hidden() -> String {
    "(hidden)".to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{Sources, load};
    use super::*;

    #[test]
    fn each_key_stands_with_value_source_and_effect() {
        let overrides = ["num.partitions=3", "num.io.threads=4", "foo=bar", "ssl.key.password=x"];
        let overrides = overrides.map(str::to_owned).to_vec();
        let loaded = load(Sources { overrides, ..Sources::default() }).unwrap();
        let text = report(&loaded);
        let said = |name: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
            line.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>()
        };
        assert_eq!(said("num.partitions"), ["num.partitions", "3", "--override", "honoured"]);
        let tuning = "no effect: Ottla sizes its threads, queues and buffers itself";
        assert_eq!(said("num.io.threads"), ["num.io.threads", "4", "--override", tuning]);
        assert_eq!(said("node.id"), ["node.id", "1", "default", "honoured"]);
        assert_eq!(said("log.retention.ms"), ["log.retention.ms", "-", "default", "honoured"]);
        assert_eq!(said("foo"), ["foo", "(hidden)", "--override", "unknown"]);
        assert_eq!(said("ssl.key.password")[1], "(hidden)");
        assert!(text.lines().all(|line| line == line.trim_end()));
    }
}
