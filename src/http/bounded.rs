//! A bound on the connections that are open at one time: each takes a descriptor.

use crate::clock;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A listener that lets further connections wait in the kernel while it has its number.
pub(super) struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
    /// How long a connection may be silent.
    patience: Duration,
}

impl Bounded {
    /// Has at most `most` connections open, and closes those that are silent for `patience`.
    pub(super) fn new(listener: TcpListener, most: usize, patience: Duration) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(most)), patience }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Placed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Placed, SocketAddr) {
        let place = self.places.clone().acquire_owned().await.ok();
        let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
        (Placed { stream, _place: place, patience: self.patience, silence: None }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection and its place, which is free again when it is closed.
pub(super) struct Placed {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
    patience: Duration,
    /// Ends when it was silent for too long; there is one while something is awaited.
    silence: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, into) {
            this.silence = None;
            return Poll::Ready(read);
        }
        let patience = this.patience;
        let silence = this
            .silence
            .get_or_insert_with(|| Box::pin(clock::sleep_until(clock::now() + patience)));
        silence.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Placed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::serve::Listener;

    #[tokio::test]
    async fn one_more_is_taken_when_one_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let mut bounded = Bounded::new(listener, 1, Duration::from_secs(60));
        let at = bounded.local_addr().expect("address");
        let _one = TcpStream::connect(at).await.expect("connected");
        let _other = TcpStream::connect(at).await.expect("connected");
        let (first, _) = bounded.accept().await;
        assert!(bounded.places.try_acquire().is_err());
        {
            let mut second = std::pin::pin!(bounded.accept());
            let mut context = task::Context::from_waker(task::Waker::noop());
            assert!(second.as_mut().poll(&mut context).is_pending());
            drop(first);
            let _taken = second.await;
        }
        assert_eq!(bounded.places.available_permits(), 1);
    }

    /// Silent connections kept every place, and a health check waited for ever.
    #[tokio::test]
    async fn a_silent_connection_gives_its_place_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let mut bounded = Bounded::new(listener, 1, Duration::from_millis(20));
        let at = bounded.local_addr().expect("address");
        let _silent = TcpStream::connect(at).await.expect("connected");
        let (mut placed, _) = bounded.accept().await;
        let read = tokio::io::AsyncReadExt::read(&mut placed, &mut [0]).await;
        assert_eq!(read.expect_err("silence").kind(), io::ErrorKind::TimedOut);
    }
}
