//! Idempotent producers that keep five requests in flight, send again what was not answered, and
//! remember every acknowledgement; and the check that all of it is there.

use super::process::{expect_dead, try_receive, try_send};
use crate::support::{Client, PATIENCE, encode, now_ms, produce_request, record};
use bytes::Bytes;
use kafka_protocol::messages::{ApiKey, InitProducerIdRequest, InitProducerIdResponse};
use kafka_protocol::messages::{ProduceResponse, ProducerId};
use kafka_protocol::records::{Compression, RecordBatchDecoder};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const IN_FLIGHT: usize = 5;
/// KAFKA_STORAGE_ERROR: the batch was not taken, and may be later.
pub const STORAGE_ERROR: i16 = 56;

/// What producers were told, by producer: (first record's number, count, base offset).
type Acked = BTreeMap<i64, Vec<(i64, i64, i64)>>;

/// Producers at work.
pub struct Load {
    pub topic: String,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    port: u16,
    topic: String,
    value_bytes: usize,
    acked: Mutex<Acked>,
    batches_acked: AtomicU64,
    /// Finish what is in flight, and no more.
    finish: AtomicBool,
    /// Leave everything.
    abandon: AtomicBool,
}

/// A batch that is sent until it is answered.
struct Batch {
    number: i64,
    count: i64,
    bytes: Bytes,
}

impl Load {
    /// `producers` producers write to partition 0 of a topic that is there.
    pub fn start(port: u16, topic: &str, producers: usize, value_bytes: usize) -> Self {
        let shared = Arc::new(Shared {
            port,
            topic: topic.to_owned(),
            value_bytes,
            acked: Mutex::default(),
            batches_acked: AtomicU64::new(0),
            finish: AtomicBool::new(false),
            abandon: AtomicBool::new(false),
        });
        let threads = (0..producers).map(|_| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.produce())
        });
        Self { topic: topic.to_owned(), threads: threads.collect(), shared }
    }

    /// Batches that were acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.shared.batches_acked.load(Ordering::Acquire)
    }

    /// Everything that was acknowledged until now.
    pub fn acknowledgements(&self) -> Acked {
        self.shared.acked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for `more` acknowledgements from now on.
    pub fn wait_for(&self, more: u64) {
        let from = self.acked();
        let until = Instant::now() + PATIENCE;
        while self.acked() < from + more {
            assert!(Instant::now() < until, "no acknowledgements");
            assert!(self.threads.iter().any(|thread| !thread.is_finished()), "all producers ended");
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// Has everything in flight acknowledged.
    pub fn finish(self) -> Acked {
        self.shared.finish.store(true, Ordering::Release);
        self.join()
    }

    /// Leaves what is in flight to its fate.
    pub fn abandon(self) -> Acked {
        self.shared.abandon.store(true, Ordering::Release);
        self.join()
    }

    fn join(mut self) -> Acked {
        for thread in self.threads.drain(..) {
            thread.join().expect("a producer");
        }
        self.acknowledgements()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.abandon.store(true, Ordering::Release);
    }
}

impl Shared {
    fn produce(&self) {
        let Some(id) = self.insist(|client| self.identify(client)) else { return };
        let mut unanswered: VecDeque<Batch> = VecDeque::new();
        let mut next = 0;
        let done = self.insist(|client| {
            for batch in &unanswered {
                self.send(client, batch)?;
            }
            loop {
                let finish = self.finish.load(Ordering::Acquire);
                while unanswered.len() < IN_FLIGHT && !finish {
                    let batch = self.batch(id, next);
                    next += batch.count;
                    // Remembered first: it may be sent in part.
                    unanswered.push_back(batch);
                    self.send(client, &unanswered[unanswered.len() - 1])?;
                }
                let Some(batch) = unanswered.front() else { return Ok(()) };
                let answer: ProduceResponse = try_receive(client, ApiKey::Produce, 9)?;
                let row = &answer.responses[0].partition_responses[0];
                match row.error_code {
                    0 => self.acknowledge(id, batch, row.base_offset),
                    // Everything behind it is out of order now: begin again with this one.
                    STORAGE_ERROR => return Err(io::ErrorKind::ConnectionReset.into()),
                    code => panic!("producer {id}, record {}: error {code}", batch.number),
                }
                unanswered.pop_front();
            }
        });
        assert!(done.is_some() || self.abandon.load(Ordering::Acquire));
    }

    /// Goes on with a new connection each time one breaks; `None` when told to leave.
    fn insist<T>(&self, mut act: impl FnMut(&mut Client) -> io::Result<T>) -> Option<T> {
        let address = format!("127.0.0.1:{}", self.port);
        while !self.abandon.load(Ordering::Acquire) {
            let Ok(mut client) = Client::try_connect(&address) else {
                std::thread::park_timeout(Duration::from_millis(2));
                continue;
            };
            match act(&mut client) {
                Ok(done) => return Some(done),
                Err(error) => expect_dead(&error),
            }
        }
        None
    }

    fn identify(&self, client: &mut Client) -> io::Result<i64> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1);
        try_send(client, ApiKey::InitProducerId, 4, &request)?;
        let answer: InitProducerIdResponse = try_receive(client, ApiKey::InitProducerId, 4)?;
        assert_eq!(answer.error_code, 0);
        Ok(answer.producer_id.0)
    }

    /// Records whose values tell the producer and the record's number.
    fn batch(&self, id: i64, number: i64) -> Batch {
        let count = 1 + number % 3;
        let records: Vec<_> = (0..count)
            .map(|at| {
                let mut value = format!("{id}:{}:", number + at).into_bytes();
                value.resize(value.len().max(self.value_bytes), b'.');
                let mut record = record(at, now_ms(), None, &value);
                (record.producer_id, record.producer_epoch) = (id, 0);
                record.sequence = i32::try_from(number + at).expect("small");
                record
            })
            .collect();
        Batch { number, count, bytes: encode(&records, Compression::None) }
    }

    fn send(&self, client: &mut Client, batch: &Batch) -> io::Result<()> {
        let request = produce_request(&self.topic, 0, -1, batch.bytes.clone());
        try_send(client, ApiKey::Produce, 9, &request)
    }

    fn acknowledge(&self, id: i64, batch: &Batch, base_offset: i64) {
        let mut acked = self.acked.lock().unwrap_or_else(PoisonError::into_inner);
        acked.entry(id).or_default().push((batch.number, batch.count, base_offset));
        self.batches_acked.fetch_add(1, Ordering::AcqRel);
    }
}

/// What a topic was found to hold, offset by offset: (producer, number).
pub struct Found {
    from: i64,
    records: Vec<(i64, i64)>,
}

impl Found {
    /// Reads partition 0 from `from` to its end. Fails when offsets are not dense, or a producer's
    /// records are not one after the other, each once.
    pub fn read(client: &mut Client, topic: &str, from: i64) -> Self {
        let end = client.offset(topic, 0, -1).2;
        let mut found = Self { from, records: Vec::new() };
        let mut last: BTreeMap<i64, i64> = BTreeMap::new();
        while found.end() < end {
            let row = client.fetch(topic, 0, found.end());
            assert_eq!(row.error_code, 0, "fetch at {}", found.end());
            let mut bytes = row.records.expect("records below the end");
            let batches = whole_batches(&bytes);
            bytes.truncate(batches);
            for set in RecordBatchDecoder::decode_all(&mut bytes).expect("sound batches") {
                for record in &set.records {
                    if record.offset < found.end() {
                        continue;
                    }
                    assert_eq!(record.offset, found.end(), "offsets are not dense");
                    let (id, number) = parse(record.value.as_ref().expect("a value"));
                    if let Some(before) = last.insert(id, number) {
                        assert_eq!(number, before + 1, "of producer {id} at {}", record.offset);
                    }
                    found.records.push((id, number));
                }
            }
        }
        found
    }

    /// The offset behind the last record.
    pub fn end(&self) -> i64 {
        self.from + i64::try_from(self.records.len()).expect("small")
    }

    /// Acknowledged records that do not lie where they were said to.
    pub fn missing(&self, acked: &Acked) -> Vec<(i64, i64)> {
        let mut missing = Vec::new();
        for (id, batches) in acked {
            for (number, count, base) in batches.iter().filter(|(_, _, base)| *base >= self.from) {
                for at in 0..*count {
                    let place = usize::try_from(base + at - self.from).expect("small");
                    if self.records.get(place) != Some(&(*id, number + at)) {
                        missing.push((*id, number + at));
                    }
                }
            }
        }
        missing
    }
}

fn parse(value: &[u8]) -> (i64, i64) {
    let text = std::str::from_utf8(value).expect("text");
    let mut parts = text.split(':').map(|part| part.parse::<i64>());
    match (parts.next(), parts.next()) {
        (Some(Ok(id)), Some(Ok(number))) => (id, number),
        _ => panic!("a strange value: {text}"),
    }
}

/// How many bytes whole batches take; the last one may be cut.
fn whole_batches(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(length) = bytes.get(at + 8..at + 12) {
        let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
        let next = at + 12 + usize::try_from(length).expect("a length");
        if next > bytes.len() {
            break;
        }
        at = next;
    }
    at
}
