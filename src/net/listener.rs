//! Listening sockets.

use super::connection;
use crate::config::Listener;
use crate::handlers::Context;
use crate::wire::Budget;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Waiting connections beyond those accepted (`socket.listen.backlog.size` in Kafka).
const BACKLOG: u32 = 1_024;
/// How long to wait after accepting failed, for descriptors to come free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What was begun has this long to be answered once the broker stops.
const DRAIN: Duration = Duration::from_secs(5);

/// A socket that listens.
#[derive(Debug)]
pub(crate) struct BoundListener {
    /// As configured, with the port that was bound.
    pub(crate) listener: Listener,
    socket: TcpListener,
}

/// Binds a listener. An empty host is every address, of both kinds where the machine has both.
pub(crate) async fn bind(listener: &Listener) -> io::Result<BoundListener> {
    let addresses: Vec<SocketAddr> = if listener.host.is_empty() {
        vec![(IpAddr::V6(Ipv6Addr::UNSPECIFIED), listener.port).into()]
    } else {
        let host = listener.host.trim_start_matches('[').trim_end_matches(']');
        tokio::net::lookup_host((host, listener.port)).await?.collect()
    };
    let address = addresses
        .first()
        .copied()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the host has no address"))?;
    let socket = match listen(address) {
        // A machine without IPv6 still has every IPv4 address.
        Err(error) if listener.host.is_empty() && error.kind() != io::ErrorKind::AddrInUse => {
            listen((IpAddr::from([0, 0, 0, 0]), listener.port).into())?
        }
        other => other?,
    };
    let port = socket.local_addr()?.port();
    let listener = Listener { port, ..listener.clone() };
    Ok(BoundListener { listener, socket })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    if address.is_ipv6() {
        socket2::SockRef::from(&socket).set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl BoundListener {
    /// Serves up to `connections_max` clients until `stopping` says so; then answers what was begun
    /// and ends.
    pub(crate) fn start(
        self,
        context: Arc<Context>,
        (budget, connections_max): (Budget, usize),
        stopping: watch::Receiver<bool>,
    ) -> JoinHandle<()> {
        tokio::spawn(self.serve(context, (budget, connections_max), stopping))
    }

    async fn serve(
        self,
        context: Arc<Context>,
        (budget, connections_max): (Budget, usize),
        mut stopping: watch::Receiver<bool>,
    ) {
        let name = self.listener.name;
        let mut connections = JoinSet::new();
        let socket = self.socket;
        loop {
            // Further clients wait in the kernel until one of these is gone.
            let is_full = connections.len() >= connections_max;
            let accepted = tokio::select! {
                accepted = socket.accept(), if !is_full => accepted,
                _ = stopping.wait_for(|stop| *stop) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let client = context.of_client(peer);
                    let serve = connection::serve(stream, client, budget.clone(), stopping.clone());
                    connections.spawn(serve);
                    if connections.len() == connections_max {
                        tracing::warn!(listener = name, connections_max, "no further connections");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    crate::clock::sleep_until(crate::clock::now() + ACCEPT_PAUSE).await;
                }
            }
        }
        drop(socket);
        let drained = async { while connections.join_next().await.is_some() {} };
        let deadline = crate::clock::sleep_until(crate::clock::now() + DRAIN);
        tokio::select! { () = drained => {}, () = deadline => {} }
    }
}
