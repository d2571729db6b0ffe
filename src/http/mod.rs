//! Metrics and health over HTTP.

mod bounded;
mod page;

use crate::broker::Broker;
use crate::limits;
use crate::wire::Budget;
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use bounded::Bounded;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Binds `ottla.http.listener`.
pub(crate) async fn bind(address: &str) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves until the broker stops.
pub(crate) fn start(
    listener: TcpListener,
    shown: Shown,
    stopping: watch::Receiver<bool>,
) -> JoinHandle<()> {
    tokio::spawn(serve(listener, shown, stopping))
}

/// What the pages tell of.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) broker: Arc<Broker>,
    pub(crate) budget: Budget,
}

async fn serve(listener: TcpListener, shown: Shown, mut stopping: watch::Receiver<bool>) {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(shown);
    let listener = Bounded::new(listener, limits::HTTP_CONNECTIONS_MAX, limits::HTTP_PATIENCE);
    // Who is in the middle of a request is not waited for: it could keep the broker from stopping.
    tokio::select! {
        served = axum::serve(listener, router).into_future() => {
            tracing::error!(?served, "metrics and health are not served any more");
        }
        _ = stopping.wait_for(|stop| *stop) => {}
    }
}

/// What Prometheus scrapes. Written on a thread that may take its time: there can be many series.
async fn metrics(
    State(shown): State<Shown>,
) -> (StatusCode, [(HeaderName, &'static str); 1], String) {
    let page = tokio::task::spawn_blocking(move || page::render(&shown.broker, &shown.budget));
    let page = page.await;
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4")];
    match page {
        Ok(page) => (StatusCode::OK, kind, page),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, kind, error.to_string()),
    }
}

/// Whether clients can be served: no log directory has failed.
async fn ready(State(shown): State<Shown>) -> (StatusCode, String) {
    let failed = shown.broker.partitions.dirs().iter().filter(|dir| dir.is_offline());
    let failed: Vec<_> = failed.map(|dir| dir.path().display().to_string()).collect();
    if failed.is_empty() {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("offline: {}\n", failed.join(", ")))
    }
}
