//! Open files behind a bound, so that ten thousand partitions do not hold every descriptor.

use crate::disk::{Disk, DiskError, DiskFile, Open};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A cache of files that are open for reading. Who holds a file keeps it open beyond its stay.
#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    most: usize,
    /// Guards the cache; held for one look-up. Opening happens outside.
    open: Mutex<Opened>,
}

#[derive(Debug, Default)]
struct Opened {
    files: HashMap<PathBuf, (Arc<dyn DiskFile>, u64)>,
    /// Counts uses; a file's last use is its age.
    uses: u64,
    /// Counts files that were closed by name.
    forgotten: u64,
}

impl Files {
    /// Keeps at most `most` files open.
    pub(crate) fn new(disk: Arc<dyn Disk>, most: usize) -> Self {
        Self { disk, most: most.max(1), open: Mutex::default() }
    }

    /// The disk beneath.
    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// Opens `path` for reading, or hands out the file that is open already.
    pub(crate) fn open(&self, path: &Path) -> Result<Arc<dyn DiskFile>, DiskError> {
        let forgotten = {
            let mut opened = self.lock();
            if let Some(file) = opened.touch(path) {
                return Ok(file);
            }
            opened.forgotten
        };
        let file = self.disk.open(path, Open::Read)?;
        let mut opened = self.lock();
        // The name may have become another file's since: of a topic made again, for instance.
        if opened.forgotten != forgotten {
            return Ok(file);
        }
        if opened.files.len() >= self.most {
            opened.drop_oldest();
        }
        opened.uses += 1;
        let used = opened.uses;
        opened.files.insert(path.to_owned(), (file.clone(), used));
        Ok(file)
    }

    /// Closes `path` here, after it was renamed or removed.
    pub(crate) fn forget(&self, path: &Path) {
        let mut opened = self.lock();
        opened.files.remove(path);
        opened.forgotten += 1;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Opened> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    fn touch(&mut self, path: &Path) -> Option<Arc<dyn DiskFile>> {
        self.uses += 1;
        let (file, used) = self.files.get_mut(path)?;
        *used = self.uses;
        Some(file.clone())
    }

    fn drop_oldest(&mut self) {
        let oldest = self.files.iter().min_by_key(|(_, (_, used))| *used);
        if let Some(path) = oldest.map(|(path, _)| path.clone()) {
            self.files.remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn the_file_unused_the_longest_is_closed_first() {
        let dir = tempfile::tempdir().expect("directory");
        let paths: Vec<_> = ["a", "b", "c"].map(|name| dir.path().join(name)).into();
        for path in &paths {
            std::fs::write(path, b"x").expect("write");
        }
        let files = Files::new(Arc::new(RealDisk), 2);
        let first = files.open(&paths[0]).expect("open");
        files.open(&paths[1]).expect("open");
        assert!(Arc::ptr_eq(&first, &files.open(&paths[0]).expect("open")));
        files.open(&paths[2]).expect("open");
        let open = files.lock();
        assert!(open.files.contains_key(&paths[0]) && !open.files.contains_key(&paths[1]));
    }
}
