//! A running broker: built from the bottom up, stopped from the top down.

use crate::broker::{self, Broker, Housekeeping};
use crate::config::{Config, Listener, Loaded};
use crate::handlers::Context;
use crate::limits::Descriptors;
use crate::net::{self, BoundListener};
use crate::wire::Budget;
use crate::{clock, http, limits};
use anyhow::Context as _;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Threads that may wait for a disk, made when needed. There is room for those that wait for one
/// that hangs, until it is clear that it does.
pub const BLOCKING_THREADS: usize = 256;

/// A broker that serves clients.
#[derive(Debug)]
pub struct Server {
    broker: Arc<Broker>,
    listeners: Vec<Listener>,
    http: Option<SocketAddr>,
    serving: Vec<JoinHandle<()>>,
    housekeeping: Housekeeping,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Opens everything and serves. When it returns clients can connect.
    ///
    /// # Errors
    /// What keeps the broker from starting: a port, a directory, the metadata. Ports are bound
    /// before any directory is touched.
    pub async fn start(loaded: Loaded) -> anyhow::Result<Self> {
        let began = clock::now();
        let config = loaded.config.clone();
        prepare_process();
        let mut bound = Vec::new();
        for listener in &config.listeners {
            let socket = net::bind(listener).await;
            bound.push(socket.with_context(|| format!("listeners={}", address(listener)))?);
        }
        let page = match &config.http_listener {
            None => None,
            Some(at) => {
                Some(http::bind(at).await.with_context(|| format!("ottla.http.listener={at}"))?)
            }
        };
        let broker = broker::start(loaded).await?;
        broker.set_endpoints(endpoints(&config, &bound));
        let (stop, stopping) = watch::channel(false);
        let budget = Budget::new(config.queued_request_bytes_max);
        let mut serving = Vec::new();
        let mut listeners = Vec::new();
        let connections_max = Descriptors::of_process().connections / bound.len().max(1);
        for socket in bound {
            let name = socket.listener.name.clone();
            listeners.push(socket.listener.clone());
            let context = Context::new(broker.clone(), name, stopping.clone());
            serving.push(socket.start(
                context,
                (budget.clone(), connections_max),
                stopping.clone(),
            ));
        }
        let http = page.as_ref().and_then(|page| page.local_addr().ok());
        if let Some(page) = page {
            let shown = http::Shown { broker: broker.clone(), budget };
            serving.push(http::start(page, shown, stopping.clone()));
        }
        let housekeeping = Housekeeping::start(broker.clone(), stopping);
        announce(&broker, &listeners, clock::now().saturating_since(began));
        Ok(Self { broker, listeners, http, serving, housekeeping, stop })
    }

    /// The listeners, with the ports that were bound.
    #[must_use]
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Where metrics and health are served.
    #[must_use]
    pub fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Stops accepting, answers what was begun, flushes, and marks the directories clean.
    pub async fn stop(self) {
        tracing::info!("stopping");
        self.stop.send_replace(true);
        for task in self.serving {
            let _ = task.await;
        }
        self.housekeeping.stopped().await;
        let broker = self.broker;
        let _no_more = broker.finish_changes().await;
        broker.groups.stop();
        let closed = tokio::task::spawn_blocking(move || broker.partitions.close_all());
        let _ = closed.await;
        tracing::info!("stopped");
    }
}

/// Raises the number of files the process may open, and warns of what would hurt under load.
fn prepare_process() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let descriptors = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    if descriptors.is_some_and(|most| most < limits::DESCRIPTORS_FEW) {
        tracing::warn!(?descriptors, "few descriptors: each connection and partition takes one");
    }
    // A count that slips through the guard costs address space only where the kernel lends it.
    let overcommit = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
    if overcommit.is_ok_and(|mode| mode.trim() == "2") || getrlimit(Resource::As).current.is_some()
    {
        tracing::warn!("address space is limited: a hostile request may end the process");
    }
}

/// Where clients of each listener are told to connect.
fn endpoints(config: &Config, bound: &[BoundListener]) -> HashMap<String, Listener> {
    let advertised = |name: &str| config.advertised_listeners.iter().find(|at| at.name == name);
    let told = bound.iter().map(|socket| {
        let own = &socket.listener;
        let mut told = advertised(&own.name).unwrap_or(own).clone();
        if told.port == 0 {
            told.port = own.port;
        }
        if told.host.is_empty() {
            "localhost".clone_into(&mut told.host);
        }
        (own.name.clone(), told)
    });
    told.collect()
}

fn address(listener: &Listener) -> String {
    format!("{}://{}:{}", listener.name, listener.host, listener.port)
}

fn announce(broker: &Broker, listeners: &[Listener], took: std::time::Duration) {
    let listeners: Vec<_> = listeners.iter().map(address).collect();
    let directories: Vec<_> =
        broker.partitions.dirs().iter().map(|dir| dir.path().display().to_string()).collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        commit = env!("OTTLA_COMMIT"),
        node = broker.node.0,
        cluster = broker.cluster_id,
        listeners = listeners.join(","),
        directories = directories.join(","),
        flush_before_ack = ?broker.settings.in_force().topic.flush_before_ack,
        partitions = broker.partitions.len(),
        ?took,
        "ready"
    );
}

/// Has a panic end the process, so that a broken invariant is never served on. Only while a
/// request is decoded is a panic caught, and closes that connection.
pub fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !crate::handlers::is_decoding() {
            std::process::abort();
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::{is_decoding, while_decoding};
    use std::panic::catch_unwind;
    use std::process::Command;

    /// Set for the process that a test starts to see how it ends.
    const PANIC: &str = "OTTLA_TEST_PANIC";

    /// The flag was never set, so that a panic in the codec ended the process.
    #[test]
    fn a_panic_ends_the_process_except_while_a_request_is_decoded() {
        let panic = |while_what: &str| -> ! { panic!("while {while_what}") };
        match std::env::var(PANIC).as_deref() {
            Ok("decoding") => {
                abort_on_panic();
                assert!(while_decoding(|| panic("decoding")).is_err());
                assert!(!is_decoding());
                return;
            }
            Ok("serving") => {
                abort_on_panic();
                let _ = catch_unwind(|| panic("serving"));
                return;
            }
            _ => {}
        }
        let ends_well = |how: &str| {
            let own = std::env::current_exe().expect("this program");
            let name = "server::tests::a_panic_ends_the_process_except_while_a_request_is_decoded";
            let ran = Command::new(own).args([name, "--exact"]).env(PANIC, how).output();
            let ran = ran.expect("runs");
            assert_ne!(ran.status.code(), Some(101), "an assertion failed: {ran:?}");
            ran.status.success()
        };
        assert!(ends_well("decoding"));
        assert!(!ends_well("serving"));
    }
}
