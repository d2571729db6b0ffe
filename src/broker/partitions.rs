//! All partitions on this broker, and the directories they lie in.

use super::partition::{Partition, Setup, log_config};
use crate::clock;
use crate::config::{Config, TopicConfig};
use crate::disk::{Disk, DiskError};
use crate::limits::Descriptors;
use crate::log::{Files, Log, LogDir, LogDirError, LogError, OpenHow};
use crate::machine::controller::{Picture, Topic};
use crate::protocol::ErrorCode;
use crate::types::{BrokerId, Instant, Offset, PartitionIndex, TopicId, TopicPartition};
use arc_swap::ArcSwap;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Files of one topic's partitions, by number; `None` where another broker has it, or none can.
type Row = Vec<Option<Arc<Partition>>>;

/// The partitions that are open, found without a lock.
#[derive(Debug)]
pub(crate) struct Partitions {
    node: BrokerId,
    dirs: Vec<Arc<LogDir>>,
    files: Arc<Files>,
    /// How many may be open, each with a descriptor of its own.
    partitions_max: usize,
    open: ArcSwap<HashMap<Arc<str>, Arc<Row>>>,
    /// Serialises changes of `open`; held while logs are opened, no request takes it.
    changing: Mutex<()>,
    runtime: tokio::runtime::Handle,
    /// The checkpoints still tell of a deleted topic: they would hold for one made again under its
    /// name, so that none is made before they are written.
    checkpoints_stale: AtomicBool,
    /// Directories of unknown topics, reported once and never touched.
    strays: Mutex<BTreeSet<PathBuf>>,
}

/// Why the partitions could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// A log directory cannot be used.
    #[error(transparent)]
    Dir(#[from] LogDirError),
    /// A partition's log cannot be opened.
    #[error("partition {partition}: {cause}")]
    Log {
        /// Which one.
        partition: TopicPartition,
        /// What is wrong with it.
        cause: LogError,
    },
}

impl Partitions {
    /// Takes directories that are claimed already; opens nothing yet.
    pub(crate) fn new(
        node: BrokerId,
        disk: Arc<dyn Disk>,
        dirs: Vec<Arc<LogDir>>,
        (descriptors, runtime): (Descriptors, tokio::runtime::Handle),
    ) -> Self {
        Self {
            node,
            dirs,
            files: Arc::new(Files::new(disk, descriptors.sealed)),
            partitions_max: descriptors.partitions,
            open: ArcSwap::default(),
            changing: Mutex::new(()),
            runtime,
            checkpoints_stale: AtomicBool::new(false),
            strays: Mutex::default(),
        }
    }

    /// The log directories.
    pub(crate) fn dirs(&self) -> &[Arc<LogDir>] {
        &self.dirs
    }

    /// How many more partitions there are descriptors for.
    pub(crate) fn room(&self) -> usize {
        let open: usize = self.dirs.iter().map(|dir| dir.partition_count()).sum();
        self.partitions_max.saturating_sub(open)
    }

    /// An open partition.
    pub(crate) fn get(&self, topic: &str, index: PartitionIndex) -> Option<Arc<Partition>> {
        let open = self.open.load();
        open.get(topic)?.get(usize::try_from(index).ok()?)?.clone()
    }

    /// An open partition, or what to answer instead: unknown everywhere, led elsewhere, or on a
    /// failed directory (redpanda#4780).
    pub(crate) fn led(
        &self,
        picture: &Picture,
        topic: &str,
        index: PartitionIndex,
    ) -> Result<Arc<Partition>, ErrorCode> {
        if let Some(partition) = self.get(topic, index) {
            if partition.dir.is_offline() {
                return Err(ErrorCode::KafkaStorageError);
            }
            return Ok(partition);
        }
        match picture.topics.get(topic).and_then(|topic| topic.partition(index)) {
            None => Err(ErrorCode::UnknownTopicOrPartition),
            Some(state) if state.leader == self.node => Err(ErrorCode::KafkaStorageError),
            Some(_) => Err(ErrorCode::NotLeaderOrFollower),
        }
    }

    /// All open partitions, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        let open = self.open.load();
        open.values().flat_map(|row| row.iter().flatten()).cloned().collect()
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.open.load().values().map(|row| row.iter().flatten().count()).sum()
    }

    /// Opens every partition of the picture that this broker has, with several threads a
    /// directory. Damaged ones stay closed and are reported.
    pub(crate) fn open_all(
        &self,
        picture: &Picture,
        config: &Config,
        resolve: &(dyn Fn(&Topic) -> TopicConfig + Sync),
    ) -> Result<(), OpenError> {
        let mut jobs = Vec::new();
        let places = self.find(picture)?;
        for topic in picture.topics.values() {
            for (index, state) in (0..).zip(&topic.partitions) {
                if state.replicas.contains(&self.node) {
                    let name = TopicPartition::new(topic.name.clone(), index);
                    let dir = places.get(&name).cloned();
                    if dir.is_none() {
                        tracing::warn!(partition = %name, "no directory, made anew");
                    }
                    jobs.push((topic.clone(), name, dir));
                }
            }
        }
        let started = clock::now();
        let progress = Progress::new(jobs.len(), started);
        let queue = Mutex::new(jobs.into_iter());
        let opened = Mutex::new(Vec::new());
        let threads = config.recovery_threads.max(1) * self.dirs.len();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let job = lock(&queue).next();
                        let Some((topic, name, dir)) = job else { return };
                        progress.step();
                        match self.open_one(&topic, name, dir, resolve(&topic)) {
                            Ok(partition) => lock(&opened).push(Arc::new(partition)),
                            Err(error) => tracing::error!(%error, "partition is offline"),
                        }
                    }
                });
            }
        });
        let opened = opened.into_inner().unwrap_or_else(PoisonError::into_inner);
        let took = clock::now().saturating_since(started);
        tracing::info!(partitions = opened.len(), ?took, "logs open");
        let mut rows: HashMap<Arc<str>, Row> = HashMap::new();
        for partition in opened {
            put(&mut rows, partition);
        }
        let rows = rows.into_iter().map(|(name, row)| (name, Arc::new(row))).collect();
        self.open.store(Arc::new(rows));
        // What was checked need not be again, and deleted topics are forgotten.
        self.forget_deleted();
        Ok(())
    }

    /// Where each known partition lies; remembers directories of unknown topics.
    fn find(&self, picture: &Picture) -> Result<HashMap<TopicPartition, Arc<LogDir>>, OpenError> {
        let mut places = HashMap::new();
        for dir in &self.dirs {
            for found in dir.partitions().map_err(LogDirError::Disk)? {
                let topic = picture.topics.get(&found.partition.topic);
                let known = topic.is_some_and(|topic| {
                    found.topic_id.is_none_or(|id| id == topic.id)
                        && topic.partition(found.partition.partition).is_some()
                });
                if known {
                    places.insert(found.partition, dir.clone());
                } else {
                    let path = dir.partition_path(&found.partition);
                    tracing::warn!(directory = %path.display(), "unknown partition, left alone");
                    lock(&self.strays).insert(path);
                }
            }
        }
        Ok(places)
    }

    fn open_one(
        &self,
        topic: &Topic,
        name: TopicPartition,
        dir: Option<Arc<LogDir>>,
        config: TopicConfig,
    ) -> Result<Partition, OpenError> {
        let failed = |cause| OpenError::Log { partition: name.clone(), cause };
        let (dir, how, is_new) = match dir {
            Some(dir) => {
                dir.identify_again(&name, topic.id);
                let how = dir.how_to_open(&name);
                (dir, how, false)
            }
            None => {
                let dir = self.emptiest().map_err(|error| failed(error.into()))?;
                let made = dir.create_partition(&name, topic.id);
                let is_new = made.map_err(|error| failed(error.into()))?;
                (dir, OpenHow::NEW, is_new)
            }
        };
        // A fraction that differs between partitions, so that segments do not all roll at once.
        let jitter = f64::from(crc32c::crc32c(name.to_string().as_bytes())) / f64::from(u32::MAX);
        let path = dir.partition_path(&name);
        let at = (clock::wall(), jitter);
        let log = Log::open(&path, self.files.clone(), log_config(&config), how, at);
        let log = log.map_err(|error| {
            // What was just made is made anew another time; anything else is kept as it is.
            if !(is_new && error.passes() && dir.disk().remove_dir(&path).is_ok()) {
                dir.set_aside(&name, error.passes());
            }
            failed(error)
        })?;
        let epoch = topic.partition(name.partition).map(|state| state.leader_epoch);
        dir.count_partition();
        let setup =
            Setup { epoch: epoch.unwrap_or_default(), config, runtime: self.runtime.clone(), name };
        Ok(Partition::lead(setup, log, dir))
    }

    /// The directory with the fewest partitions. While one is offline none is chosen: a partition
    /// that lies there would be made again, empty (KAFKA-16234).
    fn emptiest(&self) -> Result<Arc<LogDir>, DiskError> {
        if let Some(dir) = self.dirs.iter().find(|dir| dir.is_offline()) {
            return Err(DiskError {
                operation: "place a partition while offline",
                path: dir.path().to_owned(),
                cause: std::io::ErrorKind::NotConnected.into(),
            });
        }
        let least = self.dirs.iter().min_by_key(|dir| dir.partition_count());
        Ok(least.unwrap_or(&self.dirs[0]).clone())
    }

    /// Opens the partitions of a topic that are not open yet, up to the first that cannot be.
    pub(crate) fn open_topic(&self, topic: &Topic, config: &TopicConfig) -> Result<(), OpenError> {
        let _changing = lock(&self.changing);
        if self.checkpoints_stale.load(Ordering::Acquire) {
            self.try_write_checkpoints().map_err(LogDirError::Disk)?;
            self.checkpoints_stale.store(false, Ordering::Release);
        }
        let mut row: Row =
            self.open.load().get(&topic.name).map_or_else(Vec::new, |row| row.to_vec());
        let mut result = Ok(());
        for (index, state) in (0..).zip(&topic.partitions) {
            let at = usize::try_from(index).unwrap_or(usize::MAX);
            let open = row.get(at).is_some_and(Option::is_some);
            if open || !state.replicas.contains(&self.node) {
                continue;
            }
            let name = TopicPartition::new(topic.name.clone(), index);
            if self.dirs.iter().any(|dir| dir.is_set_aside(&name).is_some()) {
                continue;
            }
            let partition = match self.open_one(topic, name, None, config.clone()) {
                Ok(partition) => partition,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            put_in(&mut row, Arc::new(partition));
        }
        self.replace_row(&topic.name, Some(row));
        result
    }

    /// Opens partitions that could not be for want of space or descriptors. `picture` is looked at
    /// while no topic is closed: what is deleted meanwhile is closed after this.
    pub(crate) fn open_missing(
        &self,
        picture: &dyn Fn() -> Arc<Picture>,
        resolve: &dyn Fn(&Topic) -> TopicConfig,
    ) {
        let _changing = lock(&self.changing);
        if self.dirs.iter().any(|dir| dir.is_offline()) {
            return;
        }
        let picture = picture();
        for topic in picture.topics.values() {
            for (index, state) in (0..).zip(&topic.partitions) {
                let is_here = state.replicas.contains(&self.node);
                if !is_here || self.get(&topic.name, index).is_some() {
                    continue;
                }
                let name = TopicPartition::new(topic.name.clone(), index);
                let aside = |dir: &&Arc<LogDir>| dir.is_set_aside(&name).is_some();
                let dir = self.dirs.iter().find(aside).cloned();
                if dir.as_ref().is_some_and(|dir| dir.is_set_aside(&name) == Some(false)) {
                    continue;
                }
                let config = resolve(topic);
                match self.open_one(topic, name.clone(), dir.clone(), config) {
                    Ok(partition) => {
                        dir.iter().for_each(|dir| dir.take_back(&name));
                        tracing::info!(partition = %name, "partition is open after all");
                        self.put(partition);
                    }
                    Err(error) => tracing::error!(%error, "partition is still offline"),
                }
            }
        }
    }

    fn put(&self, partition: Partition) {
        let topic = partition.name.topic.clone();
        let mut row: Row = self.open.load().get(&topic).map_or_else(Vec::new, |row| row.to_vec());
        put_in(&mut row, Arc::new(partition));
        self.replace_row(&topic, Some(row));
    }

    /// Gives a topic's partitions up and renames their directories; says what is to be removed.
    pub(crate) fn close_topic(&self, topic: &str, unique: TopicId) -> Closed {
        let _changing = lock(&self.changing);
        let row = self.open.load().get(topic).cloned();
        self.replace_row(topic, None);
        let all = self.dirs.iter().all(|dir| !dir.is_offline());
        let mut closed = Closed { renamed: Vec::new(), all };
        for partition in row.iter().flat_map(|row| row.iter().flatten()) {
            let to = partition.dir.deleted_path(&partition.name, unique);
            closed.note(partition.log.rename_for_deletion(&to), to);
            partition.dir.discount_partition();
            partition.waiters.wake_all();
        }
        for dir in &self.dirs {
            for name in dir.forget_set_aside(topic) {
                let to = dir.deleted_path(&name, unique);
                match dir.disk().rename(&dir.partition_path(&name), &to) {
                    // It could not even be made.
                    Err(error) if error.is_not_found() => {}
                    result => closed.note(result, to),
                }
            }
        }
        // Nor must its directories come back, or its checkpoints hold, for a topic made again
        // under this name.
        for dir in self.dirs.iter().filter(|dir| !dir.is_offline()) {
            if let Err(error) = dir.disk().sync_dir(dir.path()) {
                tracing::error!(%error, "deletion not durable");
                closed.all = false;
            }
        }
        self.forget_deleted();
        closed
    }

    /// Writes the checkpoints without what they told of deleted topics, now or before the next
    /// topic is made.
    fn forget_deleted(&self) {
        if let Err(error) = self.try_write_checkpoints() {
            tracing::error!(%error, "checkpoints not written");
            self.checkpoints_stale.store(true, Ordering::Release);
        }
    }

    fn replace_row(&self, topic: &str, row: Option<Row>) {
        let mut open = HashMap::clone(&self.open.load());
        match row {
            Some(row) => open.insert(Arc::from(topic), Arc::new(row)),
            None => open.remove(topic),
        };
        self.open.store(Arc::new(open));
    }

    /// Writes where recovery begins, and where logs begin, for every directory.
    pub(crate) fn write_checkpoints(&self) {
        if let Err(error) = self.try_write_checkpoints() {
            tracing::error!(%error, "checkpoints not written");
        }
    }

    fn try_write_checkpoints(&self) -> Result<(), DiskError> {
        let mut written = Ok(());
        for dir in self.dirs.iter().filter(|dir| !dir.is_offline()) {
            let (mut points, mut starts) = (BTreeMap::new(), BTreeMap::new());
            for partition in self.all().iter().filter(|p| Arc::ptr_eq(&p.dir, dir)) {
                points.insert(partition.name.clone(), partition.log.durable().max(Offset::ZERO));
                let start = partition.log.view().start;
                if start > Offset::ZERO {
                    starts.insert(partition.name.clone(), start);
                }
            }
            written = written.and(dir.write_checkpoints(&points, &starts));
        }
        written
    }

    /// Closes every log; a directory whose logs all closed is marked clean.
    pub(crate) fn close_all(&self) {
        for dir in self.dirs.iter().filter(|dir| !dir.is_offline()) {
            let (mut points, mut starts) = (BTreeMap::new(), BTreeMap::new());
            let mut clean = true;
            for partition in self.all().iter().filter(|p| Arc::ptr_eq(&p.dir, dir)) {
                match partition.log.close() {
                    Ok(end) => {
                        points.insert(partition.name.clone(), end);
                        starts.insert(partition.name.clone(), partition.log.view().start);
                    }
                    Err(error) => {
                        clean = false;
                        tracing::error!(partition = %partition.name, %error, "log not closed");
                    }
                }
            }
            let written = dir.write_checkpoints(&points, &starts);
            match written.and_then(|()| if clean { dir.mark_clean() } else { Ok(()) }) {
                Ok(()) => {}
                Err(error) => tracing::error!(%error, "directory not marked clean"),
            }
        }
        self.dirs.iter().for_each(|dir| dir.release());
    }
}

/// What became of a deleted topic's directories.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    /// Their last names; they can be removed.
    pub(crate) renamed: Vec<PathBuf>,
    /// No directory has the topic's name any more, and that is durable.
    pub(crate) all: bool,
}

impl Closed {
    fn note(&mut self, renamed: Result<(), DiskError>, to: PathBuf) {
        match renamed {
            Ok(()) => self.renamed.push(to),
            Err(error) => {
                tracing::error!(%error, "partition not removed before the next start");
                self.all = false;
            }
        }
    }
}

/// Says now and then how far a long start is.
struct Progress {
    total: usize,
    done: AtomicUsize,
    said: Mutex<Instant>,
}

impl Progress {
    const EVERY: Duration = Duration::from_secs(2);

    fn new(total: usize, now: Instant) -> Self {
        Self { total, done: AtomicUsize::new(0), said: Mutex::new(now) }
    }

    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed);
        let now = clock::now();
        let mut said = lock(&self.said);
        if now.saturating_since(*said) >= Self::EVERY {
            *said = now;
            tracing::info!(done, of = self.total, "opening logs");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn put(rows: &mut HashMap<Arc<str>, Row>, partition: Arc<Partition>) {
    put_in(rows.entry(partition.name.topic.clone()).or_default(), partition);
}

fn put_in(row: &mut Row, partition: Arc<Partition>) {
    let at = usize::try_from(partition.name.partition).unwrap_or(usize::MAX);
    if row.len() <= at {
        row.resize(at + 1, None);
    }
    row[at] = Some(partition);
}
