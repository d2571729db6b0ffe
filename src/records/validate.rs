//! What a broker checks in a producer's batch before it appends it, outside every lock.
//!
//! The batch is passed on as it came unless the topic's settings demand otherwise: only then is
//! the head written anew, and only for another `compression.type` are the records.

use super::{
    BatchError, BatchHeader, CompressError, Compression, HEADER_BYTES, Records, compress,
    decompress,
};
use crate::limits;
use crate::protocol::ErrorCode;
use crate::types::Timestamp;
use std::borrow::Cow;

/// Whose time a topic's records carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimestampType {
    /// The producer's.
    CreateTime,
    /// The broker's, at the append.
    LogAppendTime,
}

/// Compression levels a topic may set (KIP-390).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) gzip: Option<i32>,
    pub(crate) zstd: i32,
}

/// What a topic demands of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// `max.message.bytes`: of the whole batch as it is stored.
    pub(crate) batch_bytes_max: usize,
    pub(crate) timestamp_type: TimestampType,
    /// How far a producer's time may lie behind the broker's, in milliseconds (KIP-937).
    pub(crate) before_max_ms: i64,
    /// How far it may lie ahead, in milliseconds.
    pub(crate) after_max_ms: i64,
    /// Compacted topics need a key in every record.
    pub(crate) needs_keys: bool,
    /// `compression.type`; `None` keeps the producer's.
    pub(crate) compression: Option<Compression>,
    pub(crate) levels: Levels,
    /// Open compressed batches too (`ottla.record.validation=strict`).
    pub(crate) strict: bool,
}

/// A batch that may be appended. Offset and leader epoch are still to be set.
#[derive(Debug)]
pub(crate) struct Validated<'a> {
    pub(crate) header: BatchHeader,
    /// All behind the head.
    pub(crate) records: Cow<'a, [u8]>,
}

/// Why a batch is refused, with the records that are to blame (KIP-467).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    /// Position in the batch, and what is wrong with it.
    pub(crate) records: Vec<(i32, String)>,
}

impl Refusal {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), records: Vec::new() }
    }
}

impl From<BatchError> for Refusal {
    fn from(error: BatchError) -> Self {
        let code = match error {
            BatchError::Length(_) | BatchError::Checksum { .. } => ErrorCode::CorruptMessage,
            // To Kafka a batch that is cut short is no batch at all.
            BatchError::Short | BatchError::Magic(_) | BatchError::Inconsistent(_) => {
                ErrorCode::InvalidRecord
            }
            BatchError::Compression(_) => ErrorCode::UnsupportedCompressionType,
        };
        Self::new(code, error.to_string())
    }
}

impl From<CompressError> for Refusal {
    fn from(error: CompressError) -> Self {
        Self::new(ErrorCode::InvalidRecord, error.to_string())
    }
}

/// Checks the one batch that `bytes` of a Produce request must hold.
pub(crate) fn validate<'a>(
    bytes: &'a [u8],
    rules: &Rules,
    now: Timestamp,
) -> Result<Validated<'a>, Refusal> {
    let header = one_batch(bytes)?;
    if header.size > rules.batch_bytes_max {
        return Err(too_large(header.size, rules));
    }
    header.check_crc(bytes)?;
    check_head(&header)?;
    let records = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let mut batch = Validated { header, records: Cow::Borrowed(records) };
    check_records(&mut batch, rules, now)?;
    stamp(&mut batch, rules, now)?;
    Ok(batch)
}

/// Finds the head; Produce takes exactly one batch a partition since version 3.
fn one_batch(bytes: &[u8]) -> Result<BatchHeader, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::new(ErrorCode::InvalidRecord, "there is no record batch"));
    }
    let header = BatchHeader::parse(bytes)?;
    if header.size > bytes.len() {
        return Err(BatchError::Short.into());
    }
    if header.size < bytes.len() {
        return Err(Refusal::new(ErrorCode::InvalidRecord, "there is more than one record batch"));
    }
    Ok(header)
}

fn too_large(size: usize, rules: &Rules) -> Refusal {
    let message = format!("a batch of {size} bytes is above the {} allowed", rules.batch_bytes_max);
    Refusal::new(ErrorCode::MessageTooLarge, message)
}

fn check_head(header: &BatchHeader) -> Result<(), Refusal> {
    let invalid = |message| Err(Refusal::new(ErrorCode::InvalidRecord, message));
    if header.base_offset.0 != 0 {
        return invalid("a producer's base offset must be 0");
    }
    if header.record_count <= 0 || header.last_offset_delta != header.record_count - 1 {
        return invalid("record count and last offset contradict each other");
    }
    if header.is_control() {
        return invalid("clients may not write control batches");
    }
    if header.has_producer() && header.base_sequence < 0 {
        return invalid("a producer's batch needs a sequence");
    }
    if header.is_transactional() {
        // Transactions are not offered, so such a batch is nobody's to commit.
        return Err(Refusal::new(ErrorCode::InvalidTxnState, "transactions are not supported"));
    }
    Ok(())
}

/// Opens what must be opened, checks the records there, recompresses where the topic says so.
fn check_records(batch: &mut Validated<'_>, rules: &Rules, now: Timestamp) -> Result<(), Refusal> {
    let codec = batch.header.compression()?;
    let target = rules.compression.filter(|target| *target != codec);
    let opened = codec == Compression::None || target.is_some() || rules.needs_keys || rules.strict;
    if !opened {
        let head = [batch.header.base_timestamp, batch.header.max_timestamp];
        return check_times(rules, now, || head.iter().copied().map(Ok).zip(0..));
    }
    let plain = match codec {
        Compression::None => None,
        _ => Some(decompress(codec, &batch.records, limits::DECOMPRESSED_BATCH_BYTES_MAX)?),
    };
    let records = plain.as_deref().unwrap_or(&batch.records);
    let latest = walk(&batch.header, records, rules, now)?;
    // A head whose largest time is not that of its records would mislead every look-up by time.
    if latest != batch.header.max_timestamp && !batch.header.is_log_append_time() {
        batch.header.max_timestamp = latest;
        batch.header.seal(&batch.records);
    }
    if let Some(target) = target {
        let level = match target {
            Compression::Gzip => rules.levels.gzip,
            Compression::Zstd => Some(rules.levels.zstd),
            Compression::None | Compression::Snappy | Compression::Lz4 => None,
        };
        let packed = compress(target, level, records)?;
        recompressed(batch, target, packed, rules)?;
    }
    Ok(())
}

fn recompressed(
    batch: &mut Validated<'_>,
    target: Compression,
    packed: Vec<u8>,
    rules: &Rules,
) -> Result<(), Refusal> {
    batch.header.attributes = batch.header.attributes & !0b111 | i16::from(target as u8);
    batch.header.size = HEADER_BYTES + packed.len();
    if batch.header.size > rules.batch_bytes_max {
        return Err(too_large(batch.header.size, rules));
    }
    batch.header.seal(&packed);
    batch.records = Cow::Owned(packed);
    Ok(())
}

/// Reads every record; gives the largest timestamp.
fn walk(
    header: &BatchHeader,
    records: &[u8],
    rules: &Rules,
    now: Timestamp,
) -> Result<Timestamp, Refusal> {
    let (mut earliest, mut latest) = (i64::MAX, Timestamp::NONE);
    let mut keyless = Vec::new();
    let mut walker = Records::new(records, header.record_count);
    let mut expected = 0;
    while let Some(record) = walker.next()? {
        if record.offset_delta != expected {
            return Err(BatchError::Inconsistent("offset deltas do not count up by one").into());
        }
        if rules.needs_keys && record.key.is_none() {
            keyless.push((expected, "compacted topics need a key in every record".to_owned()));
        }
        let timestamp = header.base_timestamp.0.wrapping_add(record.timestamp_delta);
        earliest = earliest.min(timestamp);
        latest = latest.max(Timestamp(timestamp));
        expected += 1;
    }
    if !keyless.is_empty() {
        return Err(Refusal {
            code: ErrorCode::InvalidRecord,
            message: "one or more records have been rejected".to_owned(),
            records: keyless,
        });
    }
    if beyond(rules, now, Timestamp(earliest)) || beyond(rules, now, latest) {
        let mut walker = Records::new(records, header.record_count);
        let base = header.base_timestamp.0;
        check_times(rules, now, || {
            std::iter::from_fn(move || match walker.next() {
                Ok(Some(record)) => Some(Ok(Timestamp(base.wrapping_add(record.timestamp_delta)))),
                Ok(None) => None,
                Err(error) => Some(Err(error)),
            })
            .zip(0..)
        })?;
    }
    Ok(latest)
}

fn beyond(rules: &Rules, now: Timestamp, timestamp: Timestamp) -> bool {
    rules.timestamp_type == TimestampType::CreateTime
        && timestamp != Timestamp::NONE
        && (now.0.saturating_sub(timestamp.0) > rules.before_max_ms
            || timestamp.0.saturating_sub(now.0) > rules.after_max_ms)
}

/// Refuses times too far from the broker's, naming each record that has one.
fn check_times<I>(rules: &Rules, now: Timestamp, times: impl FnOnce() -> I) -> Result<(), Refusal>
where
    I: Iterator<Item = (Result<Timestamp, BatchError>, i32)>,
{
    let mut wrong = Vec::new();
    for (timestamp, position) in times() {
        let timestamp = timestamp?;
        if beyond(rules, now, timestamp) {
            let (low, high) = (
                now.0.saturating_sub(rules.before_max_ms),
                now.0.saturating_add(rules.after_max_ms),
            );
            let message = format!("timestamp {timestamp} is out of range [{low}, {high}]");
            wrong.push((position, message));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let message = "one or more records have been rejected due to invalid timestamp".to_owned();
    Err(Refusal { code: ErrorCode::InvalidTimestamp, message, records: wrong })
}

/// Settles whose time the batch carries (case: Kafka clears a bit that a producer set itself).
fn stamp(batch: &mut Validated<'_>, rules: &Rules, now: Timestamp) -> Result<(), Refusal> {
    let marked = batch.header.is_log_append_time();
    match rules.timestamp_type {
        TimestampType::LogAppendTime => {
            if marked {
                let message = "producers may not set the log append time";
                return Err(Refusal::new(ErrorCode::InvalidTimestamp, message));
            }
            batch.header.set_log_append_time(true);
            batch.header.max_timestamp = now;
            batch.header.seal(&batch.records);
        }
        TimestampType::CreateTime if marked => {
            if batch.header.max_timestamp == Timestamp::NONE {
                let message = "a batch marked with the log append time has none";
                return Err(Refusal::new(ErrorCode::InvalidTimestamp, message));
            }
            batch.header.set_log_append_time(false);
            batch.header.seal(&batch.records);
        }
        TimestampType::CreateTime => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{BatchBuilder, NewRecord};

    fn rules() -> Rules {
        Rules {
            batch_bytes_max: 10_000,
            timestamp_type: TimestampType::CreateTime,
            before_max_ms: i64::MAX,
            after_max_ms: 1_000,
            needs_keys: false,
            compression: None,
            levels: Levels { gzip: None, zstd: 3 },
            strict: false,
        }
    }

    const NOW: Timestamp = Timestamp(50_000);

    fn batch(values: &[&[u8]]) -> Vec<u8> {
        let mut builder = BatchBuilder::new(NOW);
        for value in values {
            builder.push(NewRecord { value: Some(value), ..NewRecord::default() });
        }
        builder.finish()
    }

    fn resealed(mut bytes: Vec<u8>, change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
        let mut header = BatchHeader::parse(&bytes).expect("header");
        change(&mut header);
        header.seal(&bytes[HEADER_BYTES..]);
        bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
        bytes
    }

    fn code(bytes: &[u8], rules: &Rules) -> ErrorCode {
        match validate(bytes, rules, NOW) {
            Ok(_) => ErrorCode::None,
            Err(refusal) => refusal.code,
        }
    }

    #[test]
    fn a_plain_batch_is_taken_as_it_came() {
        let bytes = batch(&[b"a", b"b"]);
        let taken = validate(&bytes, &rules(), NOW).expect("valid");
        assert_eq!(taken.header.encode(), bytes[..HEADER_BYTES]);
        assert!(matches!(taken.records, Cow::Borrowed(_)));
    }

    #[test]
    fn each_lie_in_a_batch_has_its_error() {
        let good = batch(&[b"a", b"b"]);
        let mut flipped = good.clone();
        flipped[70] ^= 1;
        assert_eq!(code(&flipped, &rules()), ErrorCode::CorruptMessage);
        assert_eq!(code(&good[..good.len() - 1], &rules()), ErrorCode::InvalidRecord);
        assert_eq!(code(&[], &rules()), ErrorCode::InvalidRecord);
        assert_eq!(
            code(&[good.clone(), good.clone()].concat(), &rules()),
            ErrorCode::InvalidRecord
        );
        type Lie = fn(&mut BatchHeader);
        let lies: [(Lie, ErrorCode); 7] = [
            (|h| h.base_offset.0 = 5, ErrorCode::InvalidRecord),
            (|h| h.last_offset_delta = 7, ErrorCode::InvalidRecord),
            (|h| h.record_count = i32::MAX, ErrorCode::InvalidRecord),
            (|h| (h.record_count, h.last_offset_delta) = (3, 2), ErrorCode::InvalidRecord),
            (|h| h.attributes = 1 << 5, ErrorCode::InvalidRecord),
            (|h| h.producer_id.0 = 1, ErrorCode::InvalidRecord),
            (|h| h.attributes = 7, ErrorCode::UnsupportedCompressionType),
        ];
        for (number, (lie, expected)) in lies.into_iter().enumerate() {
            assert_eq!(code(&resealed(good.clone(), lie), &rules()), expected, "lie {number}");
        }
    }

    #[test]
    fn the_size_limit_counts_the_whole_batch_as_stored() {
        let fits = batch(&[&[1; 9_000]]);
        let exact = Rules { batch_bytes_max: fits.len(), ..rules() };
        assert_eq!(code(&fits, &exact), ErrorCode::None);
        let below = Rules { batch_bytes_max: fits.len() - 1, ..rules() };
        assert_eq!(code(&fits, &below), ErrorCode::MessageTooLarge);
    }

    #[test]
    fn recompression_changes_the_records_and_is_measured_again() {
        let zeros = batch(&[&[0; 100_000]]);
        let gzip =
            Rules { compression: Some(Compression::Gzip), batch_bytes_max: 200_000, ..rules() };
        let taken = validate(&zeros, &gzip, NOW).expect("valid");
        assert_eq!(taken.header.compression(), Ok(Compression::Gzip));
        let mut packed = taken.header.encode().to_vec();
        packed.extend_from_slice(&taken.records);
        assert!(packed.len() < 1_000);
        assert_eq!(code(&packed, &rules()), ErrorCode::None);
        let plain = Rules { compression: Some(Compression::None), ..rules() };
        assert_eq!(code(&packed, &plain), ErrorCode::MessageTooLarge);
        let roomy = Rules { batch_bytes_max: 200_000, ..plain };
        let back = validate(&packed, &roomy, NOW).expect("valid");
        assert_eq!(back.records, &zeros[HEADER_BYTES..]);
    }

    #[test]
    fn times_are_bounded_and_the_records_to_blame_are_named() {
        let mut builder = BatchBuilder::new(NOW);
        builder.push(NewRecord::default());
        builder.push_at(NewRecord::default(), Timestamp(NOW.0 + 1_001));
        let refusal = validate(&builder.finish(), &rules(), NOW).expect_err("too far ahead");
        assert_eq!(refusal.code, ErrorCode::InvalidTimestamp);
        assert_eq!(refusal.records.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn compacted_topics_need_keys_also_in_compressed_batches() {
        let needs_keys = Rules { needs_keys: true, ..rules() };
        let gzip = Rules { compression: Some(Compression::Gzip), ..rules() };
        let plain = batch(&[b"a"]);
        let taken = validate(&plain, &gzip, NOW).expect("valid");
        let packed = [&taken.header.encode()[..], &taken.records].concat();
        for bytes in [&plain, &packed] {
            let refusal = validate(bytes, &needs_keys, NOW).expect_err("no key");
            assert_eq!((refusal.code, refusal.records.len()), (ErrorCode::InvalidRecord, 1));
        }
    }

    #[test]
    fn log_append_time_overwrites_and_a_producers_own_mark_is_refused_or_cleared() {
        let broker_time = Rules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
        let bytes = batch(&[b"a"]);
        let taken = validate(&bytes, &broker_time, Timestamp(99)).expect("valid");
        assert!(taken.header.is_log_append_time());
        assert_eq!(taken.header.max_timestamp, Timestamp(99));
        let whole = [&taken.header.encode()[..], &taken.records].concat();
        taken.header.check_crc(&whole).expect("sealed again");
        assert_eq!(code(&whole, &broker_time), ErrorCode::InvalidTimestamp);
        let cleared = validate(&whole, &rules(), NOW).expect("cleared");
        assert!(!cleared.header.is_log_append_time());
    }
}
