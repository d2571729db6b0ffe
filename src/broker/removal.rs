//! Files and directories that have their last name and wait to be removed.

use crate::clock;
use crate::disk::Disk;
use crate::types::Instant;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is to be removed, and when.
#[derive(Debug)]
pub(crate) struct Removal {
    disk: Arc<dyn Disk>,
    /// Guards the list; removing happens outside.
    waiting: Mutex<Vec<(Instant, Doomed)>>,
}

#[derive(Debug)]
enum Doomed {
    File(PathBuf),
    Directory(PathBuf),
}

impl Removal {
    /// Removes from `disk`.
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, waiting: Mutex::default() }
    }

    /// Removes files after `delay`, so that who reads them now can finish.
    pub(crate) fn files(&self, files: Vec<PathBuf>, delay: Duration) {
        let at = clock::now() + delay;
        self.lock().extend(files.into_iter().map(|path| (at, Doomed::File(path))));
    }

    /// Removes directories at the next turn: who reads their files holds them open.
    pub(crate) fn directories(&self, directories: Vec<PathBuf>) {
        let now = clock::now();
        self.lock().extend(directories.into_iter().map(|path| (now, Doomed::Directory(path))));
    }

    /// Removes what is due.
    pub(crate) fn run(&self, now: Instant) {
        let due: Vec<_> = self.lock().extract_if(.., |(at, _)| *at <= now).collect();
        for (_, doomed) in due {
            let removed = match &doomed {
                Doomed::File(path) => self.disk.remove_file(path),
                Doomed::Directory(path) => self.disk.remove_dir(path),
            };
            if let Err(error) = removed {
                tracing::error!(%error, "not removed");
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Instant, Doomed)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
