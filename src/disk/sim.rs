//! A disk that crashes (tests only): in memory, with everything a power loss may do.
//!
//! A file has the content that was synced and the changes since; a directory the names that were
//! synced and the changes since. [`SimDisk::crash`] gives the disk as it may be found afterwards:
//! of the changes since, any part: writes by sectors, torn and in any order; lengths and names
//! old or new. A rename is whole, as file systems with a journal make it.

mod dice;
mod state;

pub(crate) use dice::Dice;

use super::{Disk, DiskError, DiskFile, Open, Space};
use state::{Content, Directory, NameChange, Node};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

const ROOT: usize = 0;

/// A disk in memory; clones are the same disk.
#[derive(Clone, Default)]
pub(crate) struct SimDisk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    /// Told when syncs are let go.
    released: Condvar,
}

struct Inner {
    /// By number; the first is the root.
    nodes: Vec<Node>,
    faults: Faults,
    /// Operations so far that change or sync something.
    operations: u64,
    /// Which of them were syncs.
    sync_points: Vec<u64>,
    reads: u64,
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").finish_non_exhaustive()
    }
}

impl Default for Inner {
    fn default() -> Self {
        let root = Node::Directory(Directory::default());
        Self {
            nodes: vec![root],
            faults: Faults::default(),
            operations: 0,
            sync_points: Vec::new(),
            reads: 0,
        }
    }
}

/// What is to go wrong.
#[derive(Debug, Default)]
struct Faults {
    /// From this operation on everything fails; that one itself may still be performed.
    power_off_at: Option<(u64, bool)>,
    /// This operation fails with EIO, half done.
    failing: Option<u64>,
    /// This sync fails, counted from 0, and what it should have made durable never will be.
    failing_sync: Option<usize>,
    /// Bytes that may still be written.
    room: Option<usize>,
    /// Syncs wait until this is cleared.
    held: bool,
    /// How many wait.
    waiting: usize,
}

fn fault(operation: &'static str, path: &Path, kind: ErrorKind) -> DiskError {
    DiskError { operation, path: path.to_owned(), cause: io::Error::from(kind) }
}

impl SimDisk {
    /// Operations so far that change or sync something; the next one has this number.
    pub(crate) fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Everything fails from this operation on; whether that one is still performed is `reaches`.
    pub(crate) fn power_off_at(&self, operation: u64, reaches: bool) {
        self.lock().faults.power_off_at = Some((operation, reaches));
    }

    /// The operation that comes after `skipped` others fails with EIO, half done.
    pub(crate) fn fail_operation_after(&self, skipped: u64) {
        let mut inner = self.lock();
        inner.faults.failing = Some(inner.operations + skipped);
    }

    /// The sync that comes after `skipped` others fails; later ones succeed without the data.
    pub(crate) fn fail_sync_after(&self, skipped: usize) {
        let mut inner = self.lock();
        inner.faults.failing_sync = Some(inner.sync_points.len() + skipped);
    }

    /// Only so many bytes can still be written.
    pub(crate) fn set_room(&self, room: Option<usize>) {
        self.lock().faults.room = room;
    }

    /// Makes syncs wait, or lets them go.
    pub(crate) fn hold_syncs(&self, held: bool) {
        self.lock().faults.held = held;
        self.0.released.notify_all();
    }

    /// How many syncs wait now.
    pub(crate) fn waiting_syncs(&self) -> usize {
        self.lock().faults.waiting
    }

    /// Flips a bit of a byte, on the disk itself.
    pub(crate) fn damage(&self, path: &Path, at: usize) {
        let mut inner = self.lock();
        let node = inner.find(path).expect("a file to damage");
        let content = inner.content(node);
        content.now[at] ^= 4;
        if let Some(byte) = content.durable.get_mut(at) {
            *byte ^= 4;
        }
    }

    /// Every file with its content as it is read now, by path.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        self.lock().walk(ROOT, Path::new("/"), &mut found);
        found
    }

    /// How often a file was read.
    pub(crate) fn reads(&self) -> u64 {
        self.lock().reads
    }

    /// The disk as it may be found after a loss of power, without faults.
    pub(crate) fn crash(&self, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let kept = *dice.pick(&[0, 1, 10, 50, 90, 100]);
        self.left(&mut dice, kept)
    }

    /// The same, with `kept` percent of what was not synced: 0 and 100 leave nothing to chance.
    pub(crate) fn crash_keeping(&self, kept: u64) -> Self {
        self.left(&mut Dice::new(0), kept)
    }

    fn left(&self, dice: &mut Dice, kept: u64) -> Self {
        let inner = self.lock();
        let nodes = inner.nodes.iter().map(|node| match node {
            Node::File(content) => Node::File(Content::durable(content.after_crash(dice, kept))),
            Node::Directory(directory) => {
                Node::Directory(Directory::durable(directory.after_crash(dice, kept)))
            }
        });
        let inner = Inner { nodes: nodes.collect(), ..Inner::default() };
        Self(Arc::new(Shared { inner: Mutex::new(inner), released: Condvar::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Counts an operation. An error when it fails; `half` when it is to be half done first.
    fn begin(&mut self, operation: &'static str, path: &Path) -> Result<Outcome, DiskError> {
        let number = self.operations;
        self.operations += 1;
        if let Some((off, reaches)) = self.faults.power_off_at
            && number >= off
        {
            return if number == off && reaches {
                Ok(Outcome::DoneButUnknown)
            } else {
                Err(fault(operation, path, ErrorKind::NotConnected))
            };
        }
        if self.faults.failing == Some(number) {
            return Ok(Outcome::HalfDone);
        }
        Ok(Outcome::Done)
    }

    /// Counts a sync and says whether it is the one to fail.
    fn note_sync(&mut self) -> bool {
        self.sync_points.push(self.operations - 1);
        self.faults.failing_sync == Some(self.sync_points.len() - 1)
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let mut at = ROOT;
        for part in path.components() {
            if let Component::Normal(name) = part {
                let Node::Directory(directory) = &self.nodes[at] else { return None };
                at = *directory.now.get(name.to_str()?)?;
            }
        }
        Some(at)
    }

    fn place(&self, operation: &'static str, path: &Path) -> Result<(usize, String), DiskError> {
        let missing = || fault(operation, path, ErrorKind::NotFound);
        let parent = path.parent().and_then(|parent| self.find(parent)).ok_or_else(missing)?;
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(missing)?;
        Ok((parent, name.to_owned()))
    }

    fn content(&mut self, node: usize) -> &mut Content {
        match &mut self.nodes[node] {
            Node::File(content) => content,
            Node::Directory(_) => panic!("a directory is no file"),
        }
    }

    fn directory(&mut self, node: usize) -> &mut Directory {
        match &mut self.nodes[node] {
            Node::Directory(directory) => directory,
            Node::File(_) => panic!("a file is no directory"),
        }
    }

    fn add(&mut self, (parent, name): (usize, String), node: Node) -> usize {
        let number = self.nodes.len();
        self.nodes.push(node);
        self.directory(parent).change(NameChange::Set { name, node: number });
        number
    }

    fn walk(&self, at: usize, path: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        match &self.nodes[at] {
            Node::File(content) => drop(found.insert(path.to_owned(), content.now.clone())),
            Node::Directory(directory) => {
                directory.now.iter().for_each(|(name, node)| {
                    self.walk(*node, &path.join(name), found);
                });
            }
        }
    }
}

/// How an operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Half of it is performed, where it has halves, and EIO is returned.
    HalfDone,
    /// It is performed, and nobody hears of it any more.
    DoneButUnknown,
}

impl Outcome {
    fn result(self, operation: &'static str, path: &Path) -> Result<(), DiskError> {
        match self {
            Self::Done => Ok(()),
            Self::HalfDone => Err(fault(operation, path, ErrorKind::Other)),
            Self::DoneButUnknown => Err(fault(operation, path, ErrorKind::NotConnected)),
        }
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, how: Open) -> Result<Arc<dyn DiskFile>, DiskError> {
        let mut inner = self.lock();
        let node = match (inner.find(path), how) {
            (Some(node), _) => node,
            (None, Open::Read) => return Err(fault("open", path, ErrorKind::NotFound)),
            (None, Open::Create) => {
                let outcome = inner.begin("open", path)?;
                let place = inner.place("open", path)?;
                let node = inner.add(place, Node::File(Content::default()));
                outcome.result("open", path)?;
                node
            }
        };
        Ok(Arc::new(SimFile { disk: self.clone(), path: path.to_owned(), node }))
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let mut above: Vec<_> = path.ancestors().collect();
        above.reverse();
        for path in above {
            if inner.find(path).is_none() {
                let outcome = inner.begin("create directory", path)?;
                let place = inner.place("create directory", path)?;
                inner.add(place, Node::Directory(Directory::default()));
                outcome.result("create directory", path)?;
            }
        }
        Ok(())
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<String>, DiskError> {
        let mut inner = self.lock();
        let missing = || fault("read directory", path, ErrorKind::NotFound);
        let node = inner.find(path).ok_or_else(missing)?;
        Ok(inner.directory(node).now.keys().cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let node = inner.find(from).ok_or_else(|| fault("rename", from, ErrorKind::NotFound))?;
        let outcome = inner.begin("rename", from)?;
        let (parent, old) = inner.place("rename", from)?;
        let (target, new) = inner.place("rename", to)?;
        assert_eq!(parent, target, "renames stay within a directory");
        if outcome != Outcome::HalfDone {
            inner.directory(parent).change(NameChange::Rename { from: old, to: new, node });
        }
        outcome.result("rename", from)
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        let mut inner = self.lock();
        if inner.find(path).is_none() {
            return Ok(());
        }
        let outcome = inner.begin("remove", path)?;
        let (parent, name) = inner.place("remove", path)?;
        if outcome != Outcome::HalfDone {
            inner.directory(parent).change(NameChange::Remove { name });
        }
        outcome.result("remove", path)
    }

    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let missing = || fault("sync directory", path, ErrorKind::NotFound);
        let node = inner.find(path).ok_or_else(missing)?;
        let outcome = inner.begin("sync directory", path)?;
        let fails = inner.note_sync() || outcome == Outcome::HalfDone;
        inner.directory(node).sync(fails);
        if fails {
            return Err(fault("sync directory", path, ErrorKind::Other));
        }
        outcome.result("sync directory", path)
    }

    fn space(&self, _path: &Path) -> Result<Space, DiskError> {
        let room = self.lock().faults.room;
        let free = room.map_or(1 << 40, |room| room as u64);
        Ok(Space { free, total: 1 << 40 })
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    path: PathBuf,
    node: usize,
}

impl DiskFile for SimFile {
    fn len(&self) -> Result<u64, DiskError> {
        Ok(self.disk.lock().content(self.node).now.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, DiskError> {
        let mut inner = self.disk.lock();
        inner.reads += 1;
        let content = &inner.content(self.node).now;
        let from = usize::try_from(position).expect("small").min(content.len());
        let count = buffer.len().min(content.len() - from);
        buffer[..count].copy_from_slice(&content[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, parts: &[&[u8]], position: u64) -> Result<(), DiskError> {
        let mut inner = self.disk.lock();
        let outcome = inner.begin("write", &self.path)?;
        let bytes = parts.concat();
        let mut written = bytes.len();
        if outcome == Outcome::HalfDone {
            written /= 2;
        }
        let room = inner.faults.room.unwrap_or(usize::MAX);
        let full = written > room;
        written = written.min(room);
        inner.faults.room = inner.faults.room.map(|room| room - written);
        let at = usize::try_from(position).expect("small");
        inner.content(self.node).write(at, &bytes[..written]);
        if full {
            return Err(fault("write", &self.path, ErrorKind::StorageFull));
        }
        outcome.result("write", &self.path)
    }

    fn truncate(&self, len: u64) -> Result<(), DiskError> {
        let mut inner = self.disk.lock();
        let outcome = inner.begin("truncate", &self.path)?;
        if outcome != Outcome::HalfDone {
            inner.content(self.node).set_length(usize::try_from(len).expect("small"));
        }
        outcome.result("truncate", &self.path)
    }

    fn sync(&self) -> Result<(), DiskError> {
        let mut inner = self.disk.lock();
        inner.faults.waiting += 1;
        while inner.faults.held {
            let waited = self.disk.0.released.wait(inner);
            inner = waited.unwrap_or_else(PoisonError::into_inner);
        }
        inner.faults.waiting -= 1;
        let outcome = inner.begin("sync", &self.path)?;
        let fails = inner.note_sync() || outcome == Outcome::HalfDone;
        inner.content(self.node).sync(fails);
        if fails {
            return Err(fault("sync", &self.path, ErrorKind::Other));
        }
        outcome.result("sync", &self.path)
    }

    fn descriptor(&self) -> Option<Arc<std::fs::File>> {
        None
    }
}
