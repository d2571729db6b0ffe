//! What is logged, and how much of it: `--log` at the start, broker-loggers at run time (KIP-412).

mod repeats;

use repeats::Repeats;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt as output, reload};

/// The logger that all others follow unless they are set.
pub const ROOT: &str = "root";

/// Parts of the broker whose level can be set by itself.
const LOGGERS: &[&str] = &[
    "ottla",
    "ottla.broker",
    "ottla.broker.controller",
    "ottla.broker.coordinator",
    "ottla.broker.housekeeping",
    "ottla.broker.partition",
    "ottla.broker.partitions",
    "ottla.handlers",
    "ottla.http",
    "ottla.log",
    "ottla.log.recovery",
    "ottla.machine.group",
    "ottla.net",
    "ottla.net.connection",
    "ottla.net.listener",
    "ottla.server",
    "ottla.store",
];

static LOGGING: OnceLock<Logging> = OnceLock::new();

struct Logging {
    /// What is set, by logger; guards the order of changes too.
    levels: Mutex<BTreeMap<String, LevelFilter>>,
    filter: reload::Handle<Targets, Registry>,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people; with colours on a terminal.
    Text,
    /// An object a line.
    Json,
}

/// A level or logger that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelError(String);

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LevelError {}

/// Logs to standard output from now on. `levels` is a level, or `logger=level` and a level with
/// commas between, as in `ottla.net=debug,info`.
///
/// # Errors
/// A level that is not one.
pub fn init(levels: &str, format: Format) -> Result<(), LevelError> {
    let mut set = BTreeMap::from([(ROOT.to_owned(), LevelFilter::INFO)]);
    for part in levels.split(',') {
        let (logger, level) = part.split_once('=').unwrap_or((ROOT, part));
        set.insert(logger.trim().replace("::", "."), parse(level)?);
    }
    let (filter, handle) = reload::Layer::new(targets(&set));
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stdout());
    let registry = tracing_subscriber::registry().with(filter).with(Repeats::default());
    let started = match format {
        Format::Text => registry.with(output::layer().with_ansi(ansi)).try_init(),
        Format::Json => registry.with(output::layer().json()).try_init(),
    };
    started.map_err(|error| LevelError(error.to_string()))?;
    let _ = LOGGING.set(Logging { levels: Mutex::new(set), filter: handle });
    Ok(())
}

fn parse(level: &str) -> Result<LevelFilter, LevelError> {
    match level.trim().to_ascii_uppercase().as_str() {
        "OFF" => Ok(LevelFilter::OFF),
        "FATAL" | "ERROR" => Ok(LevelFilter::ERROR),
        "WARN" => Ok(LevelFilter::WARN),
        "INFO" => Ok(LevelFilter::INFO),
        "DEBUG" => Ok(LevelFilter::DEBUG),
        "TRACE" | "ALL" => Ok(LevelFilter::TRACE),
        other => Err(LevelError(format!("{other} is no log level"))),
    }
}

fn targets(levels: &BTreeMap<String, LevelFilter>) -> Targets {
    let root = levels.get(ROOT).copied().unwrap_or(LevelFilter::INFO);
    let parts = levels.iter().filter(|(logger, _)| *logger != ROOT);
    Targets::new()
        .with_default(root)
        .with_targets(parts.map(|(logger, level)| (logger.replace('.', "::"), *level)))
}

fn name(level: LevelFilter) -> String {
    level.to_string().to_ascii_uppercase()
}

/// Every logger with its level, its own or the one it follows.
#[must_use]
pub(crate) fn levels() -> BTreeMap<String, String> {
    let set = match LOGGING.get() {
        Some(logging) => logging.levels.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        None => BTreeMap::new(),
    };
    let loggers = LOGGERS.iter().map(|logger| (*logger).to_owned());
    let all = loggers.chain([ROOT.to_owned()]).chain(set.keys().cloned());
    all.map(|logger| (logger.clone(), name(level_of(&set, &logger)))).collect()
}

fn level_of(set: &BTreeMap<String, LevelFilter>, logger: &str) -> LevelFilter {
    let mut logger = logger;
    loop {
        if let Some(level) = set.get(logger) {
            return *level;
        }
        match logger.rsplit_once('.') {
            Some((above, _)) => logger = above,
            None => return set.get(ROOT).copied().unwrap_or(LevelFilter::INFO),
        }
    }
}

/// Checks a change without making it.
pub(crate) fn check(logger: &str, level: Option<&str>) -> Result<(), LevelError> {
    if !levels().contains_key(logger) {
        return Err(LevelError(format!("Logger {logger} does not exist!")));
    }
    if logger == ROOT && level.is_none() {
        return Err(LevelError(format!(
            "Removing the log level of the {ROOT} logger is not allowed"
        )));
    }
    level.map_or(Ok(()), |level| parse(level).map(|_| ()))
}

/// Sets a logger's level, or has it follow the one above it again.
pub(crate) fn set(logger: &str, level: Option<&str>) -> Result<(), LevelError> {
    check(logger, level)?;
    let Some(logging) = LOGGING.get() else { return Ok(()) };
    let mut levels = logging.levels.lock().unwrap_or_else(PoisonError::into_inner);
    match level {
        Some(level) => drop(levels.insert(logger.to_owned(), parse(level)?)),
        None => drop(levels.remove(logger)),
    }
    logging.filter.reload(targets(&levels)).map_err(|error| LevelError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_follows_the_nearest_one_above_it_that_is_set() {
        let set = BTreeMap::from([
            (ROOT.to_owned(), LevelFilter::WARN),
            ("ottla.net".to_owned(), LevelFilter::DEBUG),
        ]);
        assert_eq!(level_of(&set, "ottla.net.connection"), LevelFilter::DEBUG);
        assert_eq!(level_of(&set, "ottla.network"), LevelFilter::WARN);
        assert_eq!(level_of(&set, "ottla"), LevelFilter::WARN);
    }

    #[test]
    fn unknown_levels_and_loggers_are_refused_and_the_root_keeps_a_level() {
        assert!(parse("LOUD").is_err());
        assert_eq!(parse("fatal"), Ok(LevelFilter::ERROR));
        assert!(check("kafka.server", Some("INFO")).is_err());
        assert!(check(ROOT, None).is_err());
        assert!(check("ottla.net", None).is_ok());
    }
}
