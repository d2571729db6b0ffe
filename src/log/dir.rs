//! A log directory: whose it is, whether it was closed cleanly, and what its checkpoints say.
//!
//! The files are Kafka's: `meta.properties`, `.kafka_cleanshutdown`, `.lock`, and checkpoints of
//! a line `0`, a line with the number of entries, then `topic partition offset` lines.

use crate::disk::{self, Disk, DiskError};
use crate::limits;
use crate::types::{Offset, TopicId, TopicPartition};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const META: &str = "meta.properties";
const CLEAN: &str = ".kafka_cleanshutdown";
const LOCK: &str = ".lock";
const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
const LOG_STARTS: &str = "log-start-offset-checkpoint";
const PARTITION: &str = "partition.metadata";
/// What a partition's directory ends in once it is to be removed.
const DELETED_SUFFIX: &str = "-delete";
/// What the directory of another topic ends in that was in a partition's way; never removed.
const STRAY_SUFFIX: &str = "-stray";

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogDirError {
    /// Another process has it.
    #[error("{} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// A line of `meta.properties` is not ours.
    #[error("{}: {key}={found} but this broker has {expected}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The line's key.
        key: &'static str,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// What `meta.properties` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) cluster_id: Option<String>,
    pub(crate) node_id: Option<String>,
    pub(crate) directory_id: Option<String>,
}

/// An open, locked log directory.
#[derive(Debug)]
pub(crate) struct LogDir {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    meta: Meta,
    /// Holds the lock until it is released or the process ends.
    lock: File,
    offline: AtomicBool,
    partitions: AtomicUsize,
    /// Bytes that producers may still write before the reserve is reached.
    room: AtomicI64,
    was_clean: bool,
    recovery_points: HashMap<TopicPartition, Offset>,
    log_starts: HashMap<TopicPartition, Offset>,
    /// Partitions that could not be opened, and whether they may be once something is there again
    /// that was short. Guards the checkpoints' files too.
    aside: Mutex<BTreeMap<TopicPartition, bool>>,
}

/// A directory in a log directory that has a partition's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) partition: TopicPartition,
    /// From `partition.metadata`; `None` when that is missing.
    pub(crate) topic_id: Option<TopicId>,
}

impl LogDir {
    /// Makes the directory when it is not there, locks it, and reads what it says. Nothing else
    /// is changed until [`Self::claim`].
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, LogDirError> {
        create_durably(&*disk, path)?;
        let lock = lock(path)?;
        let meta = read_meta(&*disk, path)?;
        let was_clean = disk::read_file(&*disk, &path.join(CLEAN)).is_ok();
        let recovery_points = read_checkpoint(&*disk, &path.join(RECOVERY_POINTS))?;
        let log_starts = read_checkpoint(&*disk, &path.join(LOG_STARTS))?;
        Ok(Self {
            path: path.to_owned(),
            disk,
            meta,
            lock,
            offline: AtomicBool::new(false),
            partitions: AtomicUsize::new(0),
            room: AtomicI64::new(i64::MAX),
            was_clean,
            recovery_points,
            log_starts,
            aside: Mutex::default(),
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The disk it is on.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// What its `meta.properties` said when it was opened.
    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Makes it this broker's, or refuses. The marker of a clean stop is deleted before any log is
    /// loaded, so that a crash while loading does not look clean (KAFKA-10471).
    pub(crate) fn claim(
        &self,
        cluster: &str,
        node: i32,
        fresh: TopicId,
    ) -> Result<(), LogDirError> {
        let check = |key, found: &Option<String>, expected: &str| match found {
            Some(found) if found != expected => Err(LogDirError::Foreign {
                path: self.path.join(META),
                key,
                found: found.clone(),
                expected: expected.to_owned(),
            }),
            _ => Ok(()),
        };
        check("cluster.id", &self.meta.cluster_id, cluster)?;
        check("node.id", &self.meta.node_id, &node.to_string())?;
        if self.meta.directory_id.is_none() {
            let directory = crate::types::topic_id_text(fresh);
            let content = format!(
                "version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={directory}\n"
            );
            disk::replace_file(&*self.disk, &self.path.join(META), content.as_bytes())?;
        }
        self.disk.remove_file(&self.path.join(CLEAN))?;
        self.disk.sync_dir(&self.path)?;
        Ok(())
    }

    /// Whether the last stop was clean, so that logs need no recovery.
    pub(crate) fn was_clean(&self) -> bool {
        self.was_clean
    }

    /// Whether a failure took it out of use.
    pub(crate) fn is_offline(&self) -> bool {
        self.offline.load(Ordering::Acquire)
    }

    /// Takes it out of use; says whether that was news.
    pub(crate) fn take_offline(&self) -> bool {
        !self.offline.swap(true, Ordering::AcqRel)
    }

    /// How many partitions are open here, for the choice of a directory.
    pub(crate) fn partition_count(&self) -> usize {
        self.partitions.load(Ordering::Relaxed)
    }

    /// A partition was opened here.
    pub(crate) fn count_partition(&self) {
        self.partitions.fetch_add(1, Ordering::Relaxed);
    }

    /// A partition is no longer here.
    pub(crate) fn discount_partition(&self) {
        self.partitions.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether the reserve is reached, so that producers are refused while reads go on.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.room.load(Ordering::Relaxed) <= 0
    }

    /// Counts what was written since the space was last looked at.
    pub(crate) fn note_written(&self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.room.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Refuses producers until [`Self::look_at_space`] finds room again.
    pub(crate) fn note_full(&self) {
        self.room.store(0, Ordering::Relaxed);
    }

    /// Compares the free space with `reserve` bytes, or with the smaller of 5 % and 1 GiB.
    pub(crate) fn look_at_space(&self, reserve: Option<u64>) -> Result<(), DiskError> {
        let space = self.disk.space(&self.path)?;
        let reserve = reserve.unwrap_or_else(|| (space.total / 20).min(1 << 30));
        let room = i64::try_from(space.free.saturating_sub(reserve)).unwrap_or(i64::MAX);
        let was_full = self.room.swap(room, Ordering::Relaxed) <= 0;
        let directory = self.path.display();
        let free = space.free;
        match (was_full, room == 0) {
            (false, true) => {
                tracing::error!(%directory, free, reserve, "reserve reached, refusing produce");
            }
            (true, false) => {
                tracing::info!(%directory, free, reserve, "space is back, taking produce");
            }
            (false, false) | (true, true) => {}
        }
        Ok(())
    }

    /// How to open a partition's log.
    pub(crate) fn how_to_open(&self, partition: &TopicPartition) -> super::OpenHow {
        let point = self.recovery_points.get(partition).copied().unwrap_or(Offset::ZERO);
        super::OpenHow {
            recovery_point: (!self.was_clean).then_some(point),
            log_start: self.log_starts.get(partition).copied().unwrap_or(Offset::ZERO),
        }
    }

    /// The directory of a partition's log.
    pub(crate) fn partition_path(&self, partition: &TopicPartition) -> PathBuf {
        self.path.join(partition.to_string())
    }

    /// Makes a partition's directory, which says which topic it belongs to, and says whether it was
    /// not there before.
    pub(crate) fn create_partition(
        &self,
        partition: &TopicPartition,
        topic_id: TopicId,
    ) -> Result<bool, DiskError> {
        let path = self.partition_path(partition);
        if self.disk.read_dir(&path).is_ok() && self.topic_id(&path)? != Some(topic_id) {
            let stray = format!("{partition}.{}{STRAY_SUFFIX}", topic_id.simple());
            tracing::warn!(directory = %path.display(), stray, "directory of another topic moved");
            self.disk.rename(&path, &self.path.join(stray))?;
        }
        let is_new = self.disk.read_dir(&path).is_err();
        let made = self.disk.create_dir(&path).and_then(|()| self.identify(&path, topic_id));
        if let Err(error) = made {
            // Half a directory would be found, and nobody could tell whose it is.
            if is_new && let Err(left) = self.disk.remove_dir(&path) {
                tracing::warn!(error = %left, "half made partition not removed");
            }
            return Err(error);
        }
        Ok(is_new)
    }

    /// Says which topic a partition's directory belongs to. Written in place, for nobody reads a
    /// directory that is being made; durable with the first records ([`Self::sync_identity`]).
    fn identify(&self, partition: &Path, topic_id: TopicId) -> Result<(), DiskError> {
        let id = crate::types::topic_id_text(topic_id);
        let content = format!("version: 0\ntopic_id: {id}");
        let file = self.disk.open(&partition.join(PARTITION), disk::Open::Create)?;
        file.truncate(0)?;
        file.write_at(&[content.as_bytes()], 0)
    }

    /// Says it again where a loss of power took it away.
    pub(crate) fn identify_again(&self, partition: &TopicPartition, topic_id: TopicId) {
        let path = self.partition_path(partition);
        let said = self.topic_id(&path).and_then(|id| match id {
            Some(_) => Ok(()),
            None => self.identify(&path, topic_id),
        });
        if let Err(error) = said {
            tracing::warn!(%error, "not said which topic a partition belongs to");
        }
    }

    /// What the metadata in a partition's directory says; `None` when there is none.
    fn topic_id(&self, partition: &Path) -> Result<Option<TopicId>, DiskError> {
        match disk::read_file(&*self.disk, &partition.join(PARTITION)) {
            Ok(content) => Ok(parse_partition_metadata(&content)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes durable which topic a partition's directory belongs to. Without that its records
    /// could be taken for those of another topic of the same name.
    pub(crate) fn sync_identity(&self, partition: &TopicPartition) -> Result<(), DiskError> {
        let path = self.partition_path(partition);
        self.disk.open(&path.join(PARTITION), disk::Open::Create)?.sync()?;
        self.disk.sync_dir(&path)
    }

    /// All partitions' directories. Others are left alone; those whose deletion was begun are
    /// removed.
    pub(crate) fn partitions(&self) -> Result<Vec<Found>, DiskError> {
        let mut found = Vec::new();
        for name in self.disk.read_dir(&self.path)? {
            if name.ends_with(DELETED_SUFFIX) {
                self.disk.remove_dir(&self.path.join(&name))?;
                continue;
            }
            let Some(partition) = parse_partition(&name) else { continue };
            match self.topic_id(&self.path.join(&name)) {
                Ok(topic_id) => found.push(Found { partition, topic_id }),
                Err(error) if error.is_not_directory() => {
                    tracing::warn!(%error, "named like a partition, left alone");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The name a partition's directory has while it is being deleted.
    pub(crate) fn deleted_path(&self, partition: &TopicPartition, unique: TopicId) -> PathBuf {
        self.path.join(format!("{partition}.{}{DELETED_SUFFIX}", unique.simple()))
    }

    /// Remembers that a partition could not be opened: what the checkpoints say of it stands, and
    /// no stop counts as clean, for the next start must find it damaged again and not cut it.
    /// With `for_now` it is opened once there is room again.
    pub(crate) fn set_aside(&self, partition: &TopicPartition, for_now: bool) {
        self.aside().insert(partition.clone(), for_now);
    }

    /// Whether a partition could not be opened, and if so whether it is to be tried again.
    pub(crate) fn is_set_aside(&self, partition: &TopicPartition) -> Option<bool> {
        self.aside().get(partition).copied()
    }

    /// A partition that could not be opened is open.
    pub(crate) fn take_back(&self, partition: &TopicPartition) {
        self.aside().remove(partition);
    }

    /// Gives up the partitions of a deleted topic that could not be opened, and says which.
    pub(crate) fn forget_set_aside(&self, topic: &str) -> Vec<TopicPartition> {
        let of_topic = |partition: &TopicPartition, _: &mut bool| &*partition.topic == topic;
        self.aside().extract_if(.., of_topic).map(|(partition, _)| partition).collect()
    }

    fn aside(&self) -> MutexGuard<'_, BTreeMap<TopicPartition, bool>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes up to where each log is durable, and where each begins.
    pub(crate) fn write_checkpoints(
        &self,
        recovery_points: &BTreeMap<TopicPartition, Offset>,
        log_starts: &BTreeMap<TopicPartition, Offset>,
    ) -> Result<(), DiskError> {
        let aside = self.aside();
        let write = |name, entries: &BTreeMap<_, _>, read: &HashMap<_, _>| {
            let mut entries = entries.clone();
            for partition in aside.keys() {
                entries.extend(read.get(partition).map(|offset| (partition.clone(), *offset)));
            }
            let content = encode_checkpoint(&entries);
            disk::replace_file(&*self.disk, &self.path.join(name), content.as_bytes())
        };
        write(LOG_STARTS, log_starts, &self.log_starts)?;
        write(RECOVERY_POINTS, recovery_points, &self.recovery_points)
    }

    /// Lets another process have it, once nothing more is written here.
    pub(crate) fn release(&self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(directory = %self.path.display(), %error, "lock not released");
        }
    }

    /// Says that every log was closed, and is durable.
    pub(crate) fn mark_clean(&self) -> Result<(), DiskError> {
        if !self.aside().is_empty() {
            let directory = self.path.display();
            tracing::warn!(%directory, "not marked clean, partitions could not be opened");
            return Ok(());
        }
        disk::replace_file(&*self.disk, &self.path.join(CLEAN), b"{\"version\":0}")
    }
}

/// Makes a directory that is still there after a loss of power, with those above it.
fn create_durably(disk: &dyn Disk, path: &Path) -> Result<(), DiskError> {
    let is_missing = |path: &&Path| disk.read_dir(path).is_err_and(|error| error.is_not_found());
    let missing: Vec<_> = path.ancestors().take_while(is_missing).collect();
    disk.create_dir(path)?;
    for made in missing {
        let above = made.parent().filter(|above| !above.as_os_str().is_empty());
        disk.sync_dir(above.unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

fn lock(path: &Path) -> Result<File, LogDirError> {
    let path = path.join(LOCK);
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    let file =
        opened.map_err(|cause| DiskError { operation: "open", path: path.clone(), cause })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err(LogDirError::Locked(path)),
    }
}

fn read_meta(disk: &dyn Disk, directory: &Path) -> Result<Meta, LogDirError> {
    let path = directory.join(META);
    let content = match disk::read_file(disk, &path) {
        Ok(content) => String::from_utf8_lossy(&content).into_owned(),
        Err(error) if error.is_not_found() => return Ok(Meta::default()),
        Err(error) => return Err(error.into()),
    };
    let value = |key: &str| {
        content.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    match value("version") {
        // Version 0 is what Kafka writes in ZooKeeper mode: `broker.id` in place of `node.id`.
        Some(version) if version == "0" || version == "1" => {}
        other => {
            return Err(LogDirError::Foreign {
                path,
                key: "version",
                found: other.unwrap_or_default(),
                expected: "1 or 0".to_owned(),
            });
        }
    }
    Ok(Meta {
        cluster_id: value("cluster.id"),
        node_id: value("node.id").or_else(|| value("broker.id")),
        directory_id: value("directory.id"),
    })
}

/// `<topic>-<partition>`; the topic may hold dashes too.
fn parse_partition(name: &str) -> Option<TopicPartition> {
    let (topic, partition) = name.rsplit_once('-')?;
    let partition: i32 = partition.parse().ok().filter(|number| *number >= 0)?;
    (crate::types::topic_name_fault(topic).is_none()).then(|| TopicPartition::new(topic, partition))
}

fn parse_partition_metadata(content: &[u8]) -> Option<TopicId> {
    let content = std::str::from_utf8(content).ok()?;
    let line = content.lines().find_map(|line| line.strip_prefix("topic_id:"))?;
    crate::types::parse_topic_id(line.trim())
}

fn encode_checkpoint(entries: &BTreeMap<TopicPartition, Offset>) -> String {
    let mut text = format!("0\n{}\n", entries.len());
    for (partition, offset) in entries {
        text.push_str(&format!("{} {} {offset}\n", partition.topic, partition.partition));
    }
    text
}

/// A damaged checkpoint is no checkpoint: everything is then checked from the beginning.
fn read_checkpoint(
    disk: &dyn Disk,
    path: &Path,
) -> Result<HashMap<TopicPartition, Offset>, DiskError> {
    let content = match disk::read_file(disk, path) {
        Ok(content) => content,
        Err(error) if error.is_not_found() => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let parsed = std::str::from_utf8(&content).ok().and_then(parse_checkpoint);
    if parsed.is_none() {
        tracing::warn!(path = %path.display(), "checkpoint is damaged, ignored");
    }
    Ok(parsed.unwrap_or_default())
}

fn parse_checkpoint(text: &str) -> Option<HashMap<TopicPartition, Offset>> {
    let mut lines = text.lines();
    if lines.next()? != "0" {
        return None;
    }
    let count: usize = lines.next()?.parse().ok()?;
    let mut entries = HashMap::new();
    for line in lines {
        let mut words = line.split(' ');
        let (topic, partition, offset) = (words.next()?, words.next()?, words.next()?);
        let partition = TopicPartition::new(topic, partition.parse().ok()?);
        let offset: i64 = offset.parse().ok()?;
        if !(0..limits::OFFSET_MAX).contains(&offset) {
            return None;
        }
        entries.insert(partition, Offset(offset));
    }
    (entries.len() == count).then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    fn open(path: &Path) -> Result<LogDir, LogDirError> {
        LogDir::open(Arc::new(RealDisk), path)
    }

    const ID: TopicId = TopicId::from_u128(77);

    #[test]
    fn a_directory_is_locked_and_remembers_its_owner() {
        let root = tempfile::tempdir().expect("directory");
        let dir = open(root.path()).expect("open");
        dir.claim("cluster", 3, ID).expect("claim");
        assert!(matches!(open(root.path()), Err(LogDirError::Locked(_))));
        drop(dir);
        let again = open(root.path()).expect("open");
        assert_eq!(again.meta().cluster_id.as_deref(), Some("cluster"));
        for (cluster, node, key) in [("other", 3, "cluster.id"), ("cluster", 4, "node.id")] {
            let refused = again.claim(cluster, node, ID);
            assert!(matches!(refused, Err(LogDirError::Foreign { key: k, .. }) if k == key));
        }
        drop(again);
        std::fs::write(root.path().join(META), "version=2\n").expect("write");
        assert!(matches!(open(root.path()), Err(LogDirError::Foreign { key: "version", .. })));
    }

    #[test]
    fn the_marker_of_a_clean_stop_holds_for_one_start() {
        let root = tempfile::tempdir().expect("directory");
        let dir = open(root.path()).expect("open");
        assert!(!dir.was_clean());
        dir.mark_clean().expect("mark");
        drop(dir);
        let dir = open(root.path()).expect("open");
        assert!(dir.was_clean());
        dir.claim("cluster", 1, ID).expect("claim");
        drop(dir);
        assert!(!open(root.path()).expect("open").was_clean());
    }

    #[test]
    fn partitions_and_checkpoints_are_found_again() {
        let root = tempfile::tempdir().expect("directory");
        let dir = open(root.path()).expect("open");
        let partition = TopicPartition::new("a-b.c", 12);
        dir.create_partition(&partition, ID).expect("create");
        std::fs::create_dir(dir.deleted_path(&partition, ID)).expect("create");
        std::fs::create_dir(root.path().join("lost+found")).expect("create");
        std::fs::write(root.path().join("a-0"), "no directory").expect("write");
        let found = dir.partitions().expect("list");
        assert_eq!(found, [Found { partition: partition.clone(), topic_id: Some(ID) }]);
        assert!(!dir.deleted_path(&partition, ID).exists());
        let points = BTreeMap::from([(partition.clone(), Offset(5))]);
        let starts = BTreeMap::from([(partition.clone(), Offset(2))]);
        dir.write_checkpoints(&points, &starts).expect("write");
        drop(dir);
        let how = open(root.path()).expect("open").how_to_open(&partition);
        assert_eq!((how.recovery_point, how.log_start), (Some(Offset(5)), Offset(2)));
    }
}
