//! Sending: bytes from memory and ranges of files, one behind the other.

use bytes::{Buf, Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{Errno, ReadWriteFlags};
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Bytes of a file sent at a time; each begins with a look whether they are in memory.
const FILE_STEP_BYTES: u64 = 512 * 1024;
/// Bytes sent at a time where they have to be read from a disk.
const COLD_STEP_BYTES: u64 = 8 << 20;
/// What is in memory of a file that was tried to be sent.
const PAGE_BYTES: u64 = 4 << 10;
/// How long a thread that reads from a disk waits for a socket.
const COLD_PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Small answers are put together into one write up to this size.
const JOIN_BYTES: usize = 16 * 1024;

/// A part of what is to be sent.
#[derive(Clone, Debug)]
pub(crate) enum Chunk {
    /// From memory.
    Bytes(Bytes),
    /// From a file, without passing through this process.
    File { file: Arc<File>, position: u64, length: u64 },
}

/// What waits to be sent on a connection, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The end of what waits, still growing.
    tail: BytesMut,
    chunks: VecDeque<Chunk>,
    /// Bytes that the socket took.
    progress: Arc<AtomicU64>,
}

impl Output {
    /// Adds a part.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Bytes(bytes) if bytes.len() + self.tail.len() <= JOIN_BYTES => {
                self.tail.extend_from_slice(&bytes);
            }
            Chunk::File { length: 0, .. } => {}
            other => {
                self.end_tail();
                self.chunks.push_back(other);
            }
        }
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.chunks.push_back(Chunk::Bytes(self.tail.split().freeze()));
        }
    }

    /// Bytes that the socket took so far: who reads slowly still gets on.
    pub(crate) fn progress(&self) -> Arc<AtomicU64> {
        self.progress.clone()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.chunks.is_empty()
    }

    /// Sends everything. A file that ends early ends the connection: its length was promised.
    pub(crate) async fn send(&mut self, stream: &TcpStream) -> io::Result<()> {
        self.end_tail();
        while let Some(chunk) = self.chunks.pop_front() {
            match chunk {
                Chunk::Bytes(bytes) => {
                    let more = !self.chunks.is_empty();
                    send_bytes(stream, bytes, (more, &self.progress)).await?;
                }
                Chunk::File { file, position, length } => {
                    send_file(stream, &file, (position, length), &self.progress).await?;
                }
            }
        }
        Ok(())
    }
}

async fn send_bytes(
    stream: &TcpStream,
    mut bytes: Bytes,
    (more, progress): (bool, &AtomicU64),
) -> io::Result<()> {
    // Held back until what follows fills the segment, so that a head does not travel alone.
    let flags = if more { SendFlags::MORE | SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL };
    while !bytes.is_empty() {
        let sent = stream
            .async_io(Interest::WRITABLE, || {
                rustix::net::send(stream, &bytes, flags).map_err(io::Error::from)
            })
            .await?;
        bytes.advance(sent);
        progress.fetch_add(sent as u64, Ordering::Relaxed);
    }
    Ok(())
}

async fn send_file(
    stream: &TcpStream,
    file: &Arc<File>,
    (mut position, mut length): (u64, u64),
    progress: &AtomicU64,
) -> io::Result<()> {
    while length > 0 {
        let mut step = FILE_STEP_BYTES.min(length);
        let mut sent = 0;
        if !is_cached(file, position, step) {
            sent = send_cold(stream, file, position, COLD_STEP_BYTES.min(length)).await?;
            // The socket took nothing, but its first bytes are in memory now.
            step = step.min(PAGE_BYTES);
        }
        if sent == 0 {
            let send = || send_range(stream, file, position, step);
            sent = stream.async_io(Interest::WRITABLE, send).await?;
        }
        position += sent;
        length -= sent;
        progress.fetch_add(sent, Ordering::Relaxed);
    }
    Ok(())
}

/// Sends what the socket takes of a range, at least a byte.
fn send_range(socket: impl AsFd, file: &File, position: u64, length: u64) -> io::Result<u64> {
    let mut at = position;
    let count = usize::try_from(length).unwrap_or(usize::MAX);
    match rustix::fs::sendfile(socket, file, Some(&mut at), count)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        sent => Ok(sent as u64),
    }
}

/// Whether both ends of a range are in the page cache, so that sending will not wait for a disk.
fn is_cached(file: &File, position: u64, length: u64) -> bool {
    let byte_at = |position| {
        let mut byte = [0];
        let mut slices = [IoSliceMut::new(&mut byte)];
        match rustix::io::preadv2(file, &mut slices, position, ReadWriteFlags::NOWAIT) {
            Err(Errno::AGAIN) => false,
            // Where the kernel cannot tell, sending may wait: no worse than not asking.
            Ok(_) | Err(_) => true,
        }
    };
    byte_at(position) && byte_at(position + length - 1)
}

/// Sends a range that is not in memory, on a thread that may wait for the disk, and says how much.
/// There the kernel reads ahead as for any file that is read from front to back.
async fn send_cold(
    stream: &TcpStream,
    file: &Arc<File>,
    position: u64,
    length: u64,
) -> io::Result<u64> {
    // Out of descriptors, the bytes go out page by page.
    let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return Ok(0) };
    let file = file.clone();
    let sending = tokio::task::spawn_blocking(move || {
        let mut done = 0;
        while done < length {
            match send_range(&socket, &file, position + done, length - done) {
                Ok(sent) => done += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // A reader that is as fast as the disk is worth the thread; another is not.
                    let mut socket = [PollFd::new(&socket, PollFlags::OUT)];
                    if rustix::event::poll(&mut socket, Some(&COLD_PATIENCE))? == 0 {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    });
    sending.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::io::Write;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn bytes_and_file_ranges_arrive_in_order() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let mut file = tempfile::tempfile().expect("file");
        let content: Vec<u8> = (0..2_000_000u32).map(|i| (i % 251) as u8).collect();
        file.write_all(&content).expect("write");
        let file = Arc::new(file);
        let sender = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("accept");
            let mut output = Output::default();
            output.push(Chunk::Bytes(Bytes::from_static(b"head")));
            output.push(Chunk::Bytes(Bytes::from_static(b"er")));
            output.push(Chunk::File { file, position: 7, length: 1_500_000 });
            output.push(Chunk::Bytes(Bytes::from(vec![9; 100_000])));
            output.send(&stream).await.expect("send");
            assert!(output.is_empty());
        });
        let mut received = Vec::new();
        let mut stream = TcpStream::connect(address).await.expect("connect");
        stream.read_to_end(&mut received).await.expect("read");
        sender.await.expect("sent");
        assert_eq!(&received[..6], b"header");
        assert_eq!(received[6..1_500_006], content[7..1_500_007]);
        assert_eq!(received[1_500_006..], vec![9; 100_000]);
    }

    /// From the disk where the file system lets go of it, and to a reader that takes its time.
    #[tokio::test]
    async fn a_file_that_is_not_in_memory_arrives_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let mut file = tempfile::tempfile().expect("file");
        let content: Vec<u8> = (0..20_000_000u32).map(|i| (i % 251) as u8).collect();
        file.write_all(&content).expect("write");
        file.sync_all().expect("synced");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
        let length = content.len() as u64 - 3;
        let sender = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("accept");
            let mut output = Output::default();
            output.push(Chunk::File { file: Arc::new(file), position: 3, length });
            output.send(&stream).await.expect("send");
        });
        let mut stream = TcpStream::connect(address).await.expect("connect");
        let mut received = vec![0; content.len() - 3];
        let mut pieces = received.chunks_mut(1_000_000);
        for piece in pieces.by_ref() {
            stream.read_exact(piece).await.expect("read");
            clock::sleep_until(clock::now() + std::time::Duration::from_millis(30)).await;
        }
        sender.await.expect("sent");
        assert!(received == content[3..]);
    }

    #[tokio::test]
    async fn a_file_that_ends_early_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("address");
        let stream = TcpStream::connect(address).await.expect("connect");
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(b"short").expect("write");
        let mut output = Output::default();
        output.push(Chunk::File { file: Arc::new(file), position: 0, length: 9 });
        let error = output.send(&stream).await.expect_err("too short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
