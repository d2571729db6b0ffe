//! Opening what a broker keeps: directories, store, metadata, logs.

use super::controller::Controller;
use super::groups::{Groups, OFFSETS_TOPIC};
use super::metadata::Metadata;
use super::partitions::{OpenError, Partitions};
use super::removal::Removal;
use super::settings::Settings;
use super::{Broker, Changes, FreshIds};
use crate::config::Loaded;
use crate::disk::{Disk, RealDisk};
use crate::limits;
use crate::log::{LogDir, LogDirError};
use crate::machine::fetch_session::FetchSessions;
use crate::store::{EmbeddedStore, MetadataStore, Op, StoreError, paths};
use crate::types::{BrokerId, topic_id_text};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// The embedded store's file, in the first log directory.
const STORE_FILE: &str = "ottla-metadata.redb";

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// A directory or a log.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The metadata store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store could not be changed.
    #[error("{0}")]
    Metadata(String),
}

impl From<LogDirError> for StartError {
    fn from(error: LogDirError) -> Self {
        Self::Open(error.into())
    }
}

/// Opens everything; nothing is served yet.
pub(crate) async fn start(loaded: Loaded) -> Result<Arc<Broker>, StartError> {
    let config = Arc::new(loaded.config.clone());
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let ids = FreshIds::default();
    let dirs = config
        .log_dirs
        .iter()
        .map(|path| LogDir::open(disk.clone(), path).map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;
    let first = config.log_dirs.first().map_or(Path::new("data"), |path| path.as_path());
    let store: Arc<dyn MetadataStore> = Arc::new(EmbeddedStore::open(&first.join(STORE_FILE))?);
    check_store(&*store, &dirs, &first.join(STORE_FILE))?;
    let known = dirs.iter().find_map(|dir| dir.meta().cluster_id.clone());
    let cluster_id = cluster_id(&*store, known.unwrap_or_else(|| topic_id_text(ids.next())))?;
    for dir in &dirs {
        dir.claim(&cluster_id, config.node_id, ids.next())?;
        dir.look_at_space(config.log_dir_reserve).map_err(LogDirError::Disk)?;
    }
    let node = BrokerId(config.node_id);
    let metadata = Arc::new(Metadata::load(&*store, vec![node])?);
    let clean = dirs.iter().all(|dir| dir.was_clean());
    let removal = Arc::new(Removal::new(disk.clone()));
    let runtime = tokio::runtime::Handle::current();
    let partitions =
        Partitions::new(node, disk, dirs, (limits::Descriptors::of_process(), runtime));
    let partitions = Arc::new(partitions);
    let defaults = (config.default_partitions, config.default_replication_factor);
    let shared = (removal.clone(), defaults);
    let controller = Controller::new(store.clone(), metadata.clone(), partitions.clone(), shared);
    finish_deletions(&*store, &partitions)?;
    if !clean {
        let raised = controller.raise_epochs(node).await;
        raised.map_err(|refusal| StartError::Metadata(refusal.message))?;
    }
    let picture = metadata.picture();
    let settings = Settings::new(loaded, &picture);
    partitions.open_all(&picture, &config, &|topic| settings.of_topic(topic))?;
    let fetch_sessions = Mutex::new(FetchSessions::new(config.fetch_sessions_max));
    let broker = Arc::new(Broker {
        config,
        settings,
        node,
        cluster_id,
        metadata,
        partitions,
        controller,
        groups: Groups::default(),
        removal,
        fetch_sessions,
        endpoints: OnceLock::new(),
        ids,
        changes: Changes::default(),
        automatic: Mutex::default(),
    });
    if let Some(topic) = picture.topics.get(OFFSETS_TOPIC) {
        broker.start_coordinators(topic);
    }
    Ok(broker)
}

/// Refuses an empty store where a directory says that there was another: its topics would be
/// unknown, and made anew.
fn check_store(
    store: &dyn MetadataStore,
    dirs: &[Arc<LogDir>],
    path: &Path,
) -> Result<(), StartError> {
    let used = dirs.iter().find(|dir| dir.meta().directory_id.is_some());
    match used {
        Some(dir) if store.get(paths::CLUSTER_ID)?.is_none() => Err(StartError::Metadata(format!(
            "{} was in use, but {} is missing or empty: restore it (it lies in the first of \
             log.dirs), or begin with empty directories",
            dir.path().display(),
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// The cluster's id: what the store says, or `fresh` from now on.
fn cluster_id(store: &dyn MetadataStore, fresh: String) -> Result<String, StoreError> {
    if let Some(node) = store.get(paths::CLUSTER_ID)? {
        return String::from_utf8(node.data)
            .map_err(|error| StoreError::Failed(format!("{}: {error}", paths::CLUSTER_ID)));
    }
    let data = fresh.clone().into_bytes();
    store.transact(&[Op::Create { path: paths::CLUSTER_ID.to_owned(), data }])?;
    Ok(fresh)
}

/// Removes the data of topics whose deletion was decided before the last stop.
fn finish_deletions(store: &dyn MetadataStore, partitions: &Partitions) -> Result<(), StartError> {
    for (path, _) in store.subtree(paths::DELETED)? {
        let Some(id) = paths::topic_id_in(&path, paths::DELETED) else { continue };
        for dir in partitions.dirs() {
            for found in dir.partitions().map_err(LogDirError::Disk)? {
                if found.topic_id == Some(id) {
                    let path = dir.partition_path(&found.partition);
                    dir.disk().remove_dir(&path).map_err(LogDirError::Disk)?;
                }
            }
        }
        store.transact(&[Op::Delete { path, version: None }])?;
    }
    Ok(())
}
