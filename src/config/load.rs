//! Where settings come from: defaults, then the file, then the environment, then the command line.

use super::Loaded;
use super::properties;
use super::resolve;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// What `load` reads.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `--config`.
    pub file: Option<PathBuf>,
    /// Each `--override`, as `key=value`.
    pub overrides: Vec<String>,
    /// The process's environment; only names that begin with `KAFKA_` count.
    pub environment: Vec<(String, String)>,
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In the file, on this line.
    File(PathBuf, usize),
    /// In the environment, by this name.
    Environment(String),
    /// On the command line.
    Override,
    /// By the older or newer name of the key.
    Synonym(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Override => f.write_str("--override"),
            Self::Synonym(name) => f.write_str(name),
        }
    }
}

/// A value as it was set, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) value: String,
    pub(crate) source: Source,
}

/// A setting that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}={value}: {reason}{}", at(.place.as_ref()))]
pub struct Fault {
    /// The key.
    pub key: String,
    /// The value; never a password.
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
    /// Where it was set, if anywhere.
    pub place: Option<Source>,
}

fn at(place: Option<&Source>) -> String {
    place.map_or(String::new(), |place| format!(" ({place})"))
}

/// Why a broker's configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there, or cannot be read.
    #[error("--config={}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file's text is not properties.
    #[error("--config={}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and on which line.
        reason: String,
    },
    /// Settings that are wrong, all of them.
    #[error("{}", lines(.0))]
    Faults(Vec<Fault>),
}

fn lines(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n")
}

/// Variables of Kafka's images and start scripts that are no settings.
const IMAGE_VARIABLES: &[&str] = &[
    "KAFKA_ADVERTISED_HOST_COMMAND",
    "KAFKA_CLUSTER_ID",
    "KAFKA_CREATE_TOPICS",
    "KAFKA_DEBUG",
    "KAFKA_GROUP",
    "KAFKA_HOME",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_MODE",
    "KAFKA_PORT",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_USER",
    "KAFKA_VERSION",
];

/// Loads a broker's configuration.
///
/// # Errors
/// The file that cannot be read, or every setting that is wrong.
pub fn load(sources: Sources) -> Result<Loaded, ConfigError> {
    let mut gathered = Gathered::default();
    if let Some(path) = sources.file {
        gathered.file(path)?;
    }
    gathered.environment(sources.environment);
    gathered.overrides(&sources.overrides);
    resolve::resolve(gathered)
}

/// Everything that was set, and what was noticed on the way.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) set: BTreeMap<String, Setting>,
    pub(super) warnings: Vec<String>,
    pub(super) faults: Vec<Fault>,
}

impl Gathered {
    fn file(&mut self, path: PathBuf) -> Result<(), ConfigError> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => return Err(ConfigError::Unreadable { path, error }),
        };
        let entries = match properties::parse(&properties::decode(&bytes)) {
            Ok(entries) => entries,
            Err(error) => {
                return Err(ConfigError::Malformed { path, reason: error.to_string() });
            }
        };
        for entry in entries {
            let source = Source::File(path.clone(), entry.line);
            let setting = Setting { value: entry.value, source };
            if let Some(before) = self.set.insert(entry.key.clone(), setting) {
                let warning =
                    format!("{} is set twice: {} does not count", entry.key, before.source);
                self.warnings.push(warning);
            }
        }
        Ok(())
    }

    fn environment(&mut self, variables: Vec<(String, String)>) {
        let mut ignored = Vec::new();
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix("KAFKA_") else { continue };
            if is_of_the_image(&name) {
                ignored.push(name);
                continue;
            }
            let setting = Setting { value, source: Source::Environment(name.clone()) };
            self.set.insert(key_of_variable(rest), setting);
        }
        if !ignored.is_empty() {
            ignored.sort();
            self.warnings.push(format!("no settings of a broker: {}", ignored.join(", ")));
        }
    }

    fn overrides(&mut self, overrides: &[String]) {
        for text in overrides {
            let Some((key, value)) = text.split_once('=') else {
                self.faults.push(Fault {
                    key: "--override".to_owned(),
                    value: text.clone(),
                    reason: "it wants key=value".to_owned(),
                    place: None,
                });
                continue;
            };
            let (key, value) = (key.trim().to_owned(), value.trim_start().to_owned());
            self.set.insert(key, Setting { value, source: Source::Override });
        }
    }
}

/// Kubernetes adds variables of its own where a service is called `kafka`.
fn is_of_the_image(name: &str) -> bool {
    IMAGE_VARIABLES.contains(&name)
        || name.ends_with("_OPTS")
        || ["KAFKA_JMX_", "KAFKA_LOG4J_", "KAFKA_PORT_", "KAFKA_SERVICE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// `LOG_RETENTION_MS` is `log.retention.ms`; two underscores are one, three are a dash.
fn key_of_variable(rest: &str) -> String {
    rest.to_lowercase().replace("___", "-").replace("__", "\0").replace('_', ".").replace('\0', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_name_keys_as_in_kafkas_image() {
        assert_eq!(key_of_variable("LOG_RETENTION_MS"), "log.retention.ms");
        assert_eq!(key_of_variable("A__B_C"), "a_b.c");
        assert_eq!(
            key_of_variable("LISTENER_NAME_MY___SIDE_MAX_CONNECTIONS"),
            "listener.name.my-side.max.connections"
        );
    }
}
