//! The seam to files: everything that must survive goes through [`Disk`], so that a test can
//! crash it at any sync point.

mod real;
#[cfg(test)]
pub(crate) mod sim;

pub(crate) use real::RealDisk;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A failed operation on a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {cause}", path.display())]
pub(crate) struct DiskError {
    /// What was tried: `open`, `write`, `sync` and so on.
    pub(crate) operation: &'static str,
    /// On what.
    pub(crate) path: PathBuf,
    /// What the operating system said. Part of the message, and therefore not its `source` too.
    pub(crate) cause: io::Error,
}

impl DiskError {
    /// Whether space ran out, which heals by itself, unlike every other failure.
    pub(crate) fn is_full(&self) -> bool {
        matches!(
            self.cause.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }

    /// Whether descriptors or memory ran out, which says nothing of the disk.
    pub(crate) fn is_shortage(&self) -> bool {
        let short = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE, rustix::io::Errno::NOMEM];
        let code = self.cause.raw_os_error();
        code.is_some_and(|code| short.iter().any(|errno| errno.raw_os_error() == code))
    }

    /// Whether something that was to be a directory is none.
    pub(crate) fn is_not_directory(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotADirectory
    }

    /// Whether the file or directory is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotFound
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// For reading; an error when it is not there.
    Read,
    /// For reading and writing; made when it is not there.
    Create,
}

/// A file system. Paths are absolute or relative to the working directory.
pub(crate) trait Disk: Send + Sync + std::fmt::Debug {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> Result<Arc<dyn DiskFile>, DiskError>;
    /// Makes a directory and those above it.
    fn create_dir(&self, path: &Path) -> Result<(), DiskError>;
    /// The names in a directory, sorted.
    fn read_dir(&self, path: &Path) -> Result<Vec<String>, DiskError>;
    /// Gives a file or directory another name, replacing a file that has it.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;
    /// Removes a file; one that is not there is no error.
    fn remove_file(&self, path: &Path) -> Result<(), DiskError>;
    /// Removes a directory with all it holds; one that is not there is no error.
    fn remove_dir(&self, path: &Path) -> Result<(), DiskError>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<(), DiskError>;
    /// Bytes that may still be written, and the size of the file system.
    fn space(&self, path: &Path) -> Result<Space, DiskError>;
}

/// How full a file system is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// What an ordinary user may still write.
    pub(crate) free: u64,
    /// The whole file system.
    pub(crate) total: u64,
}

/// An open file. Positions and lengths are in bytes.
pub(crate) trait DiskFile: Send + Sync + std::fmt::Debug {
    /// The file's length.
    fn len(&self) -> Result<u64, DiskError>;
    /// Fills `buffer` from `position` and says how much was there.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, DiskError>;
    /// Writes the parts one behind the other, whole, in slices of at most
    /// [`crate::limits::WRITE_SLICE_BYTES`]. After an error some of it may be written.
    fn write_at(&self, parts: &[&[u8]], position: u64) -> Result<(), DiskError>;
    /// Cuts the file or lengthens it with zeros.
    fn truncate(&self, len: u64) -> Result<(), DiskError>;
    /// Makes content and length durable. A failure is final: what was written is unknown.
    fn sync(&self) -> Result<(), DiskError>;
    /// The descriptor that `sendfile` and `mmap` need, where there is one.
    fn descriptor(&self) -> Option<Arc<std::fs::File>>;
}

/// Reads a whole small file.
pub(crate) fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, DiskError> {
    let file = disk.open(path, Open::Read)?;
    let mut content = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
    let read = file.read_at(&mut content, 0)?;
    content.truncate(read);
    Ok(content)
}

/// Replaces a small file so that after a crash either the old or the new content is there:
/// temporary file, sync, rename, sync of the directory.
pub(crate) fn replace_file(disk: &dyn Disk, path: &Path, content: &[u8]) -> Result<(), DiskError> {
    write_beside(disk, path, content, true)?;
    if let Some(parent) = path.parent() {
        disk.sync_dir(parent)?;
    }
    Ok(())
}

/// Replaces a small file that can be made again from the log: no sync, but never half a file.
pub(crate) fn replace_hint(disk: &dyn Disk, path: &Path, content: &[u8]) -> Result<(), DiskError> {
    write_beside(disk, path, content, false)
}

fn write_beside(
    disk: &dyn Disk,
    path: &Path,
    content: &[u8],
    durable: bool,
) -> Result<(), DiskError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    let beside = PathBuf::from(beside);
    let file = disk.open(&beside, Open::Create)?;
    file.truncate(0)?;
    file.write_at(&[content], 0)?;
    if durable {
        file.sync()?;
    }
    disk.rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shortages_heal() {
        let error = |code| DiskError {
            operation: "open",
            path: PathBuf::new(),
            cause: io::Error::from_raw_os_error(code),
        };
        let (full, quota, descriptors, io) = (error(28), error(122), error(24), error(5));
        assert!(full.is_full() && quota.is_full() && !full.is_shortage());
        assert!(descriptors.is_shortage() && !descriptors.is_full());
        assert!(!io.is_full() && !io.is_shortage());
    }
}
