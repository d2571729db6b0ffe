//! Batches that the broker writes itself: coordinators' records, and test data.

use super::record::put_varint;
use super::{BatchHeader, HEADER_BYTES};
use crate::types::{LeaderEpoch, Offset, ProducerId, Timestamp};

/// A record to be put into a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewRecord<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    /// Keys and values in order; a key may stand twice.
    pub(crate) headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

/// Gathers records of one timestamp into an uncompressed batch.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    bytes: Vec<u8>,
    count: i32,
    base_timestamp: Timestamp,
    max_timestamp: Timestamp,
}

impl BatchBuilder {
    /// An empty batch whose base timestamp is `timestamp`.
    pub(crate) fn new(timestamp: Timestamp) -> Self {
        Self {
            bytes: vec![0; HEADER_BYTES],
            count: 0,
            base_timestamp: timestamp,
            max_timestamp: timestamp,
        }
    }

    /// Adds a record with the batch's timestamp.
    pub(crate) fn push(&mut self, record: NewRecord<'_>) {
        self.push_at(record, self.base_timestamp);
    }

    /// Adds a record with a timestamp of its own.
    pub(crate) fn push_at(&mut self, record: NewRecord<'_>, timestamp: Timestamp) {
        let mut body = vec![0];
        put_varint(&mut body, timestamp.0.wrapping_sub(self.base_timestamp.0));
        put_varint(&mut body, i64::from(self.count));
        put_bytes(&mut body, record.key);
        put_bytes(&mut body, record.value);
        put_varint(&mut body, i64::try_from(record.headers.len()).unwrap_or(i64::MAX));
        for (key, value) in record.headers {
            put_bytes(&mut body, Some(key));
            put_bytes(&mut body, *value);
        }
        put_bytes(&mut self.bytes, Some(&body));
        self.count += 1;
        self.max_timestamp = self.max_timestamp.max(timestamp);
    }

    /// Writes the head, with base offset 0 and no producer.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.finish_as(ProducerId(-1), -1, -1)
    }

    /// Writes the head of a producer's batch.
    pub(crate) fn finish_as(mut self, producer: ProducerId, epoch: i16, sequence: i32) -> Vec<u8> {
        let mut header = BatchHeader {
            base_offset: Offset::ZERO,
            size: self.bytes.len(),
            leader_epoch: LeaderEpoch::UNKNOWN,
            crc: 0,
            attributes: 0,
            last_offset_delta: self.count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: producer,
            producer_epoch: epoch,
            base_sequence: sequence,
            record_count: self.count,
        };
        if let Some((head, records)) = self.bytes.split_first_chunk_mut::<HEADER_BYTES>() {
            header.seal(records);
            *head = header.encode();
        }
        self.bytes
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, i64::try_from(bytes.len()).unwrap_or(i64::MAX));
            out.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Record, Records};

    #[test]
    fn a_built_batch_reads_back() {
        let mut builder = BatchBuilder::new(Timestamp(100));
        builder.push(NewRecord { key: Some(b"k"), value: None, headers: &[(b"h", None)] });
        builder.push_at(NewRecord { key: None, value: Some(b"v"), headers: &[] }, Timestamp(150));
        let batch = builder.finish();
        let header = BatchHeader::parse(&batch).expect("header");
        assert_eq!((header.size, header.record_count), (batch.len(), 2));
        assert_eq!(header.max_timestamp, Timestamp(150));
        header.check_crc(&batch).expect("checksum");
        let mut records = Records::new(&batch[HEADER_BYTES..], 2);
        assert_eq!(
            records.next(),
            Ok(Some(Record { timestamp_delta: 0, offset_delta: 0, key: Some(b"k"), value: None }))
        );
        let second = records.next().expect("second").expect("there");
        assert_eq!((second.timestamp_delta, second.value), (50, Some(&b"v"[..])));
        assert_eq!(records.next(), Ok(None));
    }
}
