//! The store of a broker that stands alone: one file, changed in durable transactions.

use super::{MetadataStore, Node, Op, Revision, StoreError, Version};
use redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Path to (version, content).
const NODES: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("nodes");
/// The revision under the empty key.
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");
const REVISION: &str = "revision";
const FORMAT: &str = "format";
/// A file written by a later format is refused, not guessed at.
const FORMAT_VERSION: u64 = 1;

/// A file in the first log directory.
#[derive(Debug)]
pub(crate) struct EmbeddedStore {
    path: PathBuf,
    /// `None` after an error: redb refuses everything then until the file is opened again, which
    /// takes it back to the last transaction that was committed.
    database: Mutex<Option<Database>>,
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(error.to_string())
}

impl EmbeddedStore {
    /// Opens or makes the file.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let database = Mutex::new(Some(opened(path)?));
        Ok(Self { path: path.to_owned(), database })
    }

    /// Does something with the file, which is opened again where it failed the last time.
    fn with<T>(
        &self,
        ask: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let current = match database.take() {
            Some(current) => current,
            None => opened(&self.path)?,
        };
        let answer = ask(&current);
        if !matches!(answer, Err(StoreError::Failed(_))) {
            *database = Some(current);
        }
        answer
    }
}

fn opened(path: &Path) -> Result<Database, StoreError> {
    let database = Database::create(path).map_err(failed)?;
    // A file that is complete is not written to: there may be no room.
    if is_known(&database) {
        return Ok(database);
    }
    let write = database.begin_write().map_err(failed)?;
    {
        write.open_table(NODES).map_err(failed)?;
        let mut facts = write.open_table(FACTS).map_err(failed)?;
        let format = facts.get(FORMAT).map_err(failed)?.map(|value| value.value());
        match format {
            None => drop(facts.insert(FORMAT, FORMAT_VERSION).map_err(failed)?),
            Some(FORMAT_VERSION) => {}
            Some(other) => {
                return Err(StoreError::Failed(format!(
                    "{} has format {other}, this broker knows {FORMAT_VERSION}",
                    path.display()
                )));
            }
        }
    }
    write.commit().map_err(failed)?;
    Ok(database)
}

/// Whether the file is one of ours, of the format that is written today.
fn is_known(database: &Database) -> bool {
    let format = || -> Result<_, redb::Error> {
        let read = database.begin_read()?;
        read.open_table(NODES)?;
        Ok(read.open_table(FACTS)?.get(FORMAT)?.map(|value| value.value()))
    };
    format().is_ok_and(|format| format == Some(FORMAT_VERSION))
}

impl MetadataStore for EmbeddedStore {
    fn get(&self, path: &str) -> Result<Option<Node>, StoreError> {
        self.with(|database| {
            let read = database.begin_read().map_err(failed)?;
            let nodes = read.open_table(NODES).map_err(failed)?;
            let found = nodes.get(path).map_err(failed)?;
            Ok(found.map(|found| node(found.value())))
        })
    }

    fn subtree(&self, prefix: &str) -> Result<Vec<(String, Node)>, StoreError> {
        self.with(|database| {
            let read = database.begin_read().map_err(failed)?;
            let nodes = read.open_table(NODES).map_err(failed)?;
            let mut found = Vec::new();
            for entry in nodes.range(prefix..).map_err(failed)? {
                let (path, value) = entry.map_err(failed)?;
                if !path.value().starts_with(prefix) {
                    break;
                }
                found.push((path.value().to_owned(), node(value.value())));
            }
            Ok(found)
        })
    }

    fn transact(&self, ops: &[Op]) -> Result<Revision, StoreError> {
        self.with(|database| {
            let write = database.begin_write().map_err(failed)?;
            let revision = {
                let mut nodes = write.open_table(NODES).map_err(failed)?;
                for op in ops {
                    apply(&mut nodes, op)?;
                }
                let mut facts = write.open_table(FACTS).map_err(failed)?;
                let last = facts.get(REVISION).map_err(failed)?.map_or(0, |value| value.value());
                facts.insert(REVISION, last + 1).map_err(failed)?;
                Revision(last + 1)
            };
            write.commit().map_err(failed)?;
            Ok(revision)
        })
    }
}

fn node((version, data): (u64, &[u8])) -> Node {
    Node { data: data.to_owned(), version: Version(version) }
}

fn apply(nodes: &mut Table<'_, &str, (u64, &[u8])>, op: &Op) -> Result<(), StoreError> {
    let version_of = |nodes: &Table<'_, &str, (u64, &[u8])>, path: &str| {
        nodes.get(path).map_err(failed).map(|found| found.map(|found| found.value().0))
    };
    let expect = |found: Option<u64>, path: &str, wanted: Option<Version>| match (found, wanted) {
        (None, _) => Err(StoreError::Missing(path.to_owned())),
        (Some(found), Some(wanted)) if found != wanted.0 => {
            Err(StoreError::Version(path.to_owned()))
        }
        (Some(found), _) => Ok(found),
    };
    match op {
        Op::Create { path, data } => {
            if version_of(nodes, path)?.is_some() {
                return Err(StoreError::Exists(path.clone()));
            }
            nodes.insert(path.as_str(), (0, data.as_slice())).map_err(failed)?;
        }
        Op::Set { path, data, version } => {
            let found = expect(version_of(nodes, path)?, path, *version)?;
            nodes.insert(path.as_str(), (found + 1, data.as_slice())).map_err(failed)?;
        }
        Op::Delete { path, version } => {
            expect(version_of(nodes, path)?, path, *version)?;
            nodes.remove(path.as_str()).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(path: &str) -> Op {
        Op::Create { path: path.to_owned(), data: b"x".to_vec() }
    }

    fn set(path: &str, version: Option<u64>) -> Op {
        Op::Set { path: path.to_owned(), data: b"y".to_vec(), version: version.map(Version) }
    }

    #[test]
    fn a_transaction_happens_whole_or_not_at_all() {
        let dir = tempfile::tempdir().expect("directory");
        let store = EmbeddedStore::open(&dir.path().join("store")).expect("open");
        store.transact(&[create("/a/1"), create("/a/2"), create("/b")]).expect("created");
        let again = store.transact(&[set("/b", Some(0)), create("/a/1")]);
        assert!(matches!(again, Err(StoreError::Exists(path)) if path == "/a/1"));
        assert_eq!(store.get("/b").expect("get").expect("there").version, Version(0));
        store.transact(&[set("/b", Some(0))]).expect("set");
        assert!(matches!(store.transact(&[set("/b", Some(0))]), Err(StoreError::Version(_))));
        assert!(matches!(store.transact(&[set("/c", None)]), Err(StoreError::Missing(_))));
        let below: Vec<_> =
            store.subtree("/a/").expect("list").into_iter().map(|(path, _)| path).collect();
        assert_eq!(below, ["/a/1", "/a/2"]);
    }

    #[test]
    fn what_was_committed_is_there_after_opening_again_and_revisions_go_on() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("store");
        let store = EmbeddedStore::open(&path).expect("open");
        let first = store.transact(&[create("/a")]).expect("created");
        drop(store);
        let store = EmbeddedStore::open(&path).expect("open");
        assert!(store.get("/a").expect("get").is_some());
        assert!(store.transact(&[set("/a", None)]).expect("set") > first);
    }
}
