//! The metrics page. Names are those that the usual rules of Kafka's JMX exporter give, so that
//! dashboards made for Kafka find them.

use crate::broker::Broker;
use crate::broker::partition::Partition;
use crate::handlers;
use crate::metrics as counted;
use crate::wire::Budget;
use metrics::{counter, gauge, with_local_recorder};
use metrics_exporter_prometheus::PrometheusBuilder;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes the page. A recorder lives for one page, so that deleted topics leave it.
pub(super) fn render(broker: &Broker, budget: &Budget) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    with_local_recorder(&recorder, || {
        traffic(broker);
        logs(broker);
        cluster(broker);
        requests(budget);
    });
    page.render()
}

fn traffic(broker: &Broker) {
    let mut topics: BTreeMap<Arc<str>, Vec<Arc<Partition>>> = BTreeMap::new();
    for partition in broker.partitions.all() {
        topics.entry(partition.name.topic.clone()).or_default().push(partition);
    }
    let mut whole = [0; 6];
    for (topic, partitions) in topics {
        let sum = |of: fn(&Partition) -> &AtomicU64| {
            partitions.iter().map(|partition| of(partition).load(Ordering::Relaxed)).sum::<u64>()
        };
        let sums = [
            sum(|partition| &partition.traffic.records_in),
            sum(|partition| &partition.traffic.bytes_in),
            sum(|partition| &partition.traffic.bytes_out),
            sum(|partition| &partition.traffic.produce_requests),
            sum(|partition| &partition.traffic.fetch_requests),
            sum(|partition| &partition.traffic.failed_produces),
        ];
        for ((name, value), total) in TRAFFIC.iter().zip(sums).zip(&mut whole) {
            counter!(*name, "topic" => topic.to_string()).absolute(value);
            *total += value;
        }
    }
    for (name, value) in TRAFFIC.iter().zip(whole) {
        counter!(*name).absolute(value);
    }
}

const TRAFFIC: [&str; 6] = [
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
];

#[allow(clippy::cast_precision_loss, reason = "Prometheus knows only floating point")]
fn logs(broker: &Broker) {
    for partition in broker.partitions.all() {
        let labels = [
            ("topic", partition.name.topic.to_string()),
            ("partition", partition.name.partition.to_string()),
        ];
        let (start, end) = {
            let view = partition.log.view();
            (view.start.0, view.end.offset.0)
        };
        gauge!("kafka_log_log_size", &labels).set(partition.log.size() as f64);
        gauge!("kafka_log_log_numlogsegments", &labels).set(partition.log.segment_count() as f64);
        gauge!("kafka_log_log_logstartoffset", &labels).set(start as f64);
        gauge!("kafka_log_log_logendoffset", &labels).set(end as f64);
    }
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus knows only floating point")]
fn cluster(broker: &Broker) {
    let partitions = broker.partitions.len() as f64;
    let dirs = broker.partitions.dirs();
    let offline = dirs.iter().filter(|dir| dir.is_offline()).count();
    let topics = broker.metadata.look().topics.len();
    let known: usize =
        broker.metadata.look().topics.values().map(|topic| topic.partitions.len()).sum();
    let dark = known.saturating_sub(broker.partitions.len());
    gauge!("kafka_server_replicamanager_partitioncount").set(partitions);
    gauge!("kafka_server_replicamanager_leadercount").set(partitions);
    gauge!("kafka_server_replicamanager_underreplicatedpartitions").set(0.0);
    gauge!("kafka_server_replicamanager_underminisrpartitioncount").set(0.0);
    gauge!("kafka_server_replicamanager_offlinereplicacount").set(dark as f64);
    gauge!("kafka_controller_kafkacontroller_activecontrollercount").set(1.0);
    gauge!("kafka_controller_kafkacontroller_activebrokercount").set(1.0);
    gauge!("kafka_controller_kafkacontroller_offlinepartitionscount").set(dark as f64);
    gauge!("kafka_controller_kafkacontroller_globaltopiccount").set(topics as f64);
    gauge!("kafka_controller_kafkacontroller_globalpartitioncount").set(known as f64);
    gauge!("kafka_log_logmanager_offlinelogdirectorycount").set(offline as f64);
    gauge!("kafka_server_fetchsessioncache_numincrementalfetchsessions")
        .set(broker.fetch_session_count() as f64);
    gauge!("kafka_server_socketservermetrics_connection_count")
        .set(counted::connections_open() as f64);
    gauge!("ottla_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus knows only floating point")]
fn requests(budget: &Budget) {
    for (key, name) in handlers::offered() {
        counter!("kafka_network_requestmetrics_requests_total", "request" => name)
            .absolute(counted::requests(key));
    }
    gauge!("kafka_network_socketserver_memorypoolused").set(budget.taken() as f64);
    counter!("ottla_connections_refused_total").absolute(counted::connections_refused());
}
