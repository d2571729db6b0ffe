//! The operating system's files.

use super::{Disk, DiskError, DiskFile, Open, Space};
use crate::limits;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk of this machine.
#[derive(Debug)]
pub(crate) struct RealDisk;

#[derive(Debug)]
struct RealFile {
    path: PathBuf,
    file: Arc<File>,
}

fn wrap<T>(operation: &'static str, path: &Path, result: io::Result<T>) -> Result<T, DiskError> {
    result.map_err(|cause| DiskError { operation, path: path.to_owned(), cause })
}

fn unless_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: Open) -> Result<Arc<dyn DiskFile>, DiskError> {
        let mut options = OpenOptions::new();
        options.read(true);
        match how {
            Open::Read => {}
            Open::Create => {
                options.write(true).create(true).truncate(false);
            }
        }
        let file = wrap("open", path, options.open(path))?;
        Ok(Arc::new(RealFile { path: path.to_owned(), file: Arc::new(file) }))
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        wrap("create directory", path, fs::create_dir_all(path))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<String>, DiskError> {
        let mut names = Vec::new();
        for entry in wrap("read directory", path, fs::read_dir(path))? {
            let entry = wrap("read directory", path, entry)?;
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        wrap("rename", from, fs::rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        wrap("remove", path, unless_missing(fs::remove_file(path)))
    }

    fn remove_dir(&self, path: &Path) -> Result<(), DiskError> {
        wrap("remove", path, unless_missing(fs::remove_dir_all(path)))
    }

    fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        let directory = wrap("open directory", path, File::open(path))?;
        wrap("sync directory", path, directory.sync_all())
    }

    fn space(&self, path: &Path) -> Result<Space, DiskError> {
        let stat = wrap("statvfs", path, rustix::fs::statvfs(path).map_err(io::Error::from))?;
        let unit = stat.f_frsize;
        Ok(Space { free: stat.f_bavail * unit, total: stat.f_blocks * unit })
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> Result<u64, DiskError> {
        wrap("stat", &self.path, self.file.metadata().map(|data| data.len()))
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, DiskError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = position + filled as u64;
            match self.file.read_at(&mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return wrap("read", &self.path, Err(error)),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, parts: &[&[u8]], mut position: u64) -> Result<(), DiskError> {
        let mut slices = Slices::new(parts);
        loop {
            let (gathered, count) = slices.next_gathered();
            if count == 0 {
                return Ok(());
            }
            match rustix::io::pwritev(&*self.file, &gathered[..count], position) {
                Ok(0) => {
                    return wrap("write", &self.path, Err(io::ErrorKind::WriteZero.into()));
                }
                Ok(written) => {
                    position += written as u64;
                    slices.advance(written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return wrap("write", &self.path, Err(error.into())),
            }
        }
    }

    fn truncate(&self, len: u64) -> Result<(), DiskError> {
        wrap("truncate", &self.path, self.file.set_len(len))
    }

    fn sync(&self) -> Result<(), DiskError> {
        wrap("sync", &self.path, self.file.sync_data())
    }

    fn descriptor(&self) -> Option<Arc<File>> {
        Some(self.file.clone())
    }
}

/// What is still to be written of several parts, handed out in pieces of a bounded size.
struct Slices<'a> {
    parts: &'a [&'a [u8]],
    /// Bytes of the first part that are written already.
    skip: usize,
}

impl<'a> Slices<'a> {
    fn new(parts: &'a [&'a [u8]]) -> Self {
        Self { parts, skip: 0 }
    }

    /// The next pieces, at most [`limits::WRITE_SLICE_BYTES`] together, and their number.
    fn next_gathered(&self) -> ([IoSlice<'a>; 4], usize) {
        let mut gathered = std::array::from_fn(|_| IoSlice::new(&[]));
        let (mut count, mut room, mut skip) = (0, limits::WRITE_SLICE_BYTES, self.skip);
        for part in self.parts {
            if count == gathered.len() || room == 0 {
                break;
            }
            let rest = &part[skip..];
            skip = 0;
            let piece = &rest[..rest.len().min(room)];
            if !piece.is_empty() {
                gathered[count] = IoSlice::new(piece);
                count += 1;
                room -= piece.len();
            }
        }
        (gathered, count)
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(first) = self.parts.first() {
            let rest = first.len() - self.skip;
            if written < rest {
                self.skip += written;
                return;
            }
            written -= rest;
            self.skip = 0;
            self.parts = &self.parts[1..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_parts_larger_than_a_slice_are_written_whole_and_in_order() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("file");
        let file = RealDisk.open(&path, Open::Create).expect("open");
        let large: Vec<u8> = (0..limits::WRITE_SLICE_BYTES * 2 + 77)
            .map(|i| u8::try_from(i % 251).expect("small"))
            .collect();
        file.write_at(&[b"head", b"", &large, b"tail"], 3).expect("write");
        let content = fs::read(&path).expect("read");
        assert_eq!(&content[3..7], b"head");
        assert_eq!(&content[7..7 + large.len()], &large[..]);
        assert_eq!(&content[7 + large.len()..], b"tail");
    }
}
