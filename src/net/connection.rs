//! One connection: requests begin in the order they arrive and are answered in that order.
//!
//! A Produce may begin while earlier ones still wait to be committed; any other request begins
//! when everything before it is answered, as in Kafka. One task reads, handles and writes: on the
//! way from the socket to the log and back nothing is handed to another thread.

use crate::clock;
use crate::handlers::{self, Client, Reply, Response};
use crate::limits;
use crate::types::Instant;
use crate::wire::{Budget, Charge, FrameBuffer, FrameError, Output};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// An answer that is awaited, or there.
enum Pending {
    Ready(Response),
    Waiting(Pin<Box<dyn Future<Output = Result<Response, String>> + Send>>),
    /// The connection is closed in place of this answer, once those before it are sent.
    Close(Closed),
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum Closed {
    /// The client closed it.
    #[error("closed by the client")]
    ByClient,
    /// The client was silent for `connections.max.idle.ms`.
    #[error("idle")]
    Idle,
    /// The broker stops.
    #[error("stopping")]
    Stopping,
    /// The request cannot be understood, or is not offered.
    #[error("{0}")]
    Refused(String),
    /// A frame that no honest client sends.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

struct Connection {
    stream: TcpStream,
    client: Arc<Client>,
    input: FrameBuffer,
    pending: VecDeque<Pending>,
    /// The last request begun is not a Produce: nothing begins before it is answered.
    barrier: bool,
    output: Output,
    budget: Budget,
    /// What of the budget is held.
    charge: Charge,
    last_used: Instant,
    /// When the frame that is arriving began to.
    frame_began: Instant,
    /// How long it had to wait for memory, so that nothing was read of it, and since when it does.
    starved: Duration,
    starved_since: Option<Instant>,
}

/// Serves a connection to its end.
pub(super) async fn serve(
    stream: TcpStream,
    client: Arc<Client>,
    budget: Budget,
    stopping: watch::Receiver<bool>,
) {
    // Answers are written whole; waiting for more to send would only delay them.
    let _ = stream.set_nodelay(true);
    let frame_max = client.context.broker.config.request_bytes_max;
    let connection = Connection {
        stream,
        client: client.clone(),
        input: FrameBuffer::new(frame_max),
        pending: VecDeque::new(),
        barrier: false,
        output: Output::default(),
        charge: budget.charge(),
        budget,
        last_used: clock::now(),
        frame_began: clock::now(),
        starved: Duration::ZERO,
        starved_since: None,
    };
    let _open = crate::metrics::connection_opened();
    let peer = client.peer;
    match connection.run(stopping).await {
        Closed::ByClient | Closed::Stopping => tracing::debug!(%peer, "connection closed"),
        Closed::Idle => tracing::debug!(%peer, "idle connection closed"),
        reason @ (Closed::Refused(_) | Closed::Frame(_)) => {
            crate::metrics::connection_refused();
            if let Some(suppressed) = client.context.refusals.admit(clock::now()) {
                tracing::warn!(%peer, %reason, suppressed, "connection closed");
            }
        }
        Closed::Socket(error) => tracing::debug!(%peer, %error, "connection lost"),
    }
}

impl Connection {
    async fn run(mut self, mut stopping: watch::Receiver<bool>) -> Closed {
        loop {
            let stop = *stopping.borrow();
            if !stop {
                self.begin_requests();
            }
            self.collect_ready();
            if let Err(closed) = self.send().await {
                return closed;
            }
            if let Some(closed) = self.closed() {
                return closed;
            }
            if stop && self.pending.is_empty() {
                return Closed::Stopping;
            }
            if !stop && self.can_begin_another() {
                continue;
            }
            if let Some(closed) = self.gives_up() {
                return closed;
            }
            if let Err(closed) = self.wait(&mut stopping, stop).await {
                return closed;
            }
        }
    }

    /// Why the frame that is arriving is not waited for any longer, if it is not.
    fn gives_up(&self) -> Option<Closed> {
        let now = clock::now();
        if let Some(since) = self.starved_since {
            let starved = now.saturating_since(since) > limits::BUDGET_PATIENCE;
            return starved.then(|| Closed::Refused("no memory for a frame".to_owned()));
        }
        let arrived = self.input.arrived() as u64;
        let is_half = arrived > 0 && matches!(self.input.peek(), Ok(None));
        let since = now.saturating_since(self.frame_began).saturating_sub(self.starved);
        // It keeps memory from others that wait for it, and hardly grows.
        let hoards = is_half
            && self.charge.bytes() > 0
            && since > limits::FRAME_GRACE
            && arrived < since.as_secs() * limits::FRAME_RATE_MIN
            && self.budget.is_wanted();
        hoards.then(|| {
            Closed::Refused("a frame arrives too slowly for the memory it holds".to_owned())
        })
    }

    /// Sends what is ready. A client that does not read for as long as it may be idle is gone.
    async fn send(&mut self) -> Result<(), Closed> {
        if self.output.is_empty() {
            return Ok(());
        }
        let idle = self.client.context.broker.config.connections_max_idle;
        let progress = self.output.progress();
        let mut sending = std::pin::pin!(self.output.send(&self.stream));
        loop {
            let before = progress.load(Ordering::Relaxed);
            tokio::select! {
                sent = &mut sending => return Ok(sent?),
                () = clock::sleep_until(clock::now() + idle) => {
                    if progress.load(Ordering::Relaxed) == before {
                        return Err(Closed::Idle);
                    }
                }
            }
        }
    }

    /// Begins the requests that have arrived whole, as far as they may begin.
    fn begin_requests(&mut self) {
        while self.can_begin_another() {
            let frame = match self.input.take() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.pending.push_back(Pending::Close(error.into()));
                    break;
                }
            };
            self.last_used = clock::now();
            self.note_frame();
            let (reply, produce) = handlers::handle(&self.client, frame);
            self.barrier = !produce;
            match reply {
                Reply::Now(response) => self.pending.push_back(Pending::Ready(response)),
                Reply::Later(response) => self.pending.push_back(Pending::Waiting(response)),
                Reply::Nothing => {}
                Reply::Close(reason) => {
                    self.pending.push_back(Pending::Close(Closed::Refused(reason)));
                }
            }
        }
    }

    /// Why the connection is to be closed now, if it is.
    fn closed(&mut self) -> Option<Closed> {
        match self.pending.pop_front_if(|first| matches!(first, Pending::Close(_)))? {
            Pending::Close(closed) => Some(closed),
            Pending::Ready(_) | Pending::Waiting(_) => None,
        }
    }

    fn can_begin_another(&mut self) -> bool {
        self.collect_ready();
        // Nothing behind a request that closes the connection is looked at.
        if matches!(self.pending.back(), Some(Pending::Close(_))) {
            return false;
        }
        let frame = match self.input.peek() {
            Ok(Some(frame)) => frame,
            Ok(None) => return false,
            Err(_) => return true,
        };
        self.pending.is_empty()
            || !self.barrier
                && handlers::is_produce(frame)
                && self.pending.len() < limits::IN_FLIGHT_PER_CONNECTION
    }

    /// Moves the answers at the front that are there into the output.
    fn collect_ready(&mut self) {
        while let Some(Pending::Ready(_)) = self.pending.front() {
            if let Some(Pending::Ready(response)) = self.pending.pop_front() {
                response.chunks.into_iter().for_each(|chunk| self.output.push(chunk));
            }
        }
    }

    /// Waits until there is something to do: an answer, bytes, memory for them, silence for too
    /// long, the end. `stopped` is what the caller has seen of `stopping`.
    async fn wait(
        &mut self,
        stopping: &mut watch::Receiver<bool>,
        stopped: bool,
    ) -> Result<(), Closed> {
        // While a whole request waits for its turn no more is read: that bounds what is held.
        let reads = !stopped && !matches!(self.input.peek(), Ok(Some(_)));
        let wanted = self.charged_bytes();
        self.charge.shrink(wanted);
        let lacks_memory = reads && self.charge.bytes() < wanted;
        self.note_starving(lacks_memory);
        let idle = self.client.context.broker.config.connections_max_idle;
        let waits = !self.pending.is_empty();
        let first = async {
            match self.pending.front_mut() {
                Some(Pending::Waiting(response)) => Some(response.await),
                Some(Pending::Ready(_) | Pending::Close(_)) | None => None,
            }
        };
        tokio::select! {
            biased;
            Some(response) = first, if waits => {
                if let Some(place) = self.pending.front_mut() {
                    *place = match response {
                        Ok(response) => Pending::Ready(response),
                        Err(reason) => Pending::Close(Closed::Refused(reason)),
                    };
                }
            }
            () = self.charge.set(wanted), if lacks_memory => self.note_starving(false),
            readable = self.stream.readable(), if reads && !lacks_memory => {
                readable?;
                if self.read()? == 0 {
                    return Err(Closed::ByClient);
                }
            }
            () = clock::sleep_until(self.last_used + idle), if !waits => {
                return Err(Closed::Idle);
            }
            _ = stopping.wait_for(|stop| *stop), if !stopped => {}
            // Who holds memory, or waits for some, is looked at now and then.
            () = clock::sleep_until(clock::now() + limits::MEMORY_LOOK), if wanted > 0 => {}
        }
        if self.starved_since.is_some() && is_gone(&self.stream).await? {
            return Err(Closed::ByClient);
        }
        Ok(())
    }

    fn note_starving(&mut self, lacks_memory: bool) {
        match (lacks_memory, self.starved_since) {
            (true, None) => self.starved_since = Some(clock::now()),
            (false, Some(since)) => {
                self.starved += clock::now().saturating_since(since);
                self.starved_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn note_frame(&mut self) {
        (self.frame_began, self.starved) = (self.last_used, Duration::ZERO);
    }

    /// Reads what has arrived; 0 bytes are the end.
    fn read(&mut self) -> Result<usize, Closed> {
        self.last_used = clock::now();
        if self.input.arrived() == 0 {
            self.note_frame();
        }
        match self.stream.try_read_buf(self.input.room()) {
            Ok(count) => Ok(count),
            // Readiness was a false alarm; report what is not the end.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(usize::MAX),
            Err(error) => Err(error.into()),
        }
    }

    /// Bytes of the budget that the next read may come to hold.
    fn charged_bytes(&mut self) -> usize {
        if self.budget.is_tight() || self.budget.is_wanted() {
            self.input.release();
        }
        let held = self.input.capacity().max(self.input.wanted_capacity());
        held.saturating_sub(limits::FRAME_EXEMPT_BYTES)
    }
}

/// Whether the client has closed, although what it sent before is unread.
async fn is_gone(stream: &TcpStream) -> io::Result<bool> {
    tokio::select! {
        biased;
        ready = stream.ready(Interest::READABLE) => Ok(ready?.is_read_closed()),
        () = std::future::ready(()) => Ok(false),
    }
}
