//! A bound on the connections that are open at one time: each takes a descriptor.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A listener that lets further connections wait in the kernel while it has its number.
pub(super) struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Bounded {
    /// Has at most `most` connections open.
    pub(super) fn new(listener: TcpListener, most: usize) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(most)) }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Placed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Placed, SocketAddr) {
        let place = self.places.clone().acquire_owned().await.ok();
        let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
        (Placed { stream, _place: place }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection and its place, which is free again when it is closed.
pub(super) struct Placed {
    stream: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
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
        let mut bounded = Bounded::new(listener, 1);
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
}
