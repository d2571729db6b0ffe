//! Seeded randomness: a failing seed fails again.

use bytes::Bytes;
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

/// The generator xorshift64*.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Begins a sequence of its own for each seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Any number.
    pub(super) fn u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.u64() >> 16).expect("48 bits") % end
    }

    /// Yes as often as no.
    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Any number of 64 bits, small ones and −1 often.
    pub(super) fn i64(&mut self) -> i64 {
        match self.below(4) {
            0 => -1,
            1 => 7,
            _ => self.u64().cast_signed(),
        }
    }

    /// Any number of 32 bits.
    pub(super) fn i32(&mut self) -> i32 {
        self.i64() as i32
    }

    /// Any number of 16 bits.
    pub(super) fn i16(&mut self) -> i16 {
        self.i64() as i16
    }

    /// Any number of 8 bits.
    pub(super) fn i8(&mut self) -> i8 {
        self.i64() as i8
    }

    /// An identity.
    pub(super) fn uuid(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.u64(), self.u64())
    }

    /// Text whose length needs one byte or two as a varint.
    pub(super) fn text(&mut self) -> StrBytes {
        let length = if self.below(8) == 0 { 200 } else { self.below(10) };
        let letters = ['a', 'Z', '-', 'é', '漢'];
        let text: String = (0..length).map(|_| letters[self.below(letters.len())]).collect();
        StrBytes::from_string(text)
    }

    /// Text or null.
    pub(super) fn nullable_text(&mut self) -> Option<StrBytes> {
        self.coin().then(|| self.text())
    }

    /// Bytes or null.
    pub(super) fn nullable_bytes(&mut self) -> Option<Bytes> {
        let length = if self.below(8) == 0 { 20_000 } else { self.below(300) };
        self.coin().then(|| (0..length).map(|at| at as u8).collect())
    }

    /// None to three of what `one` makes.
    pub(super) fn several<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| one(self)).collect()
    }
}
