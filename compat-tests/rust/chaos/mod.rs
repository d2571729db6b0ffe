//! Brokers that are processes of their own, load that minds every acknowledgement, and disks
//! that can be taken away.
#![allow(clippy::disallowed_methods, reason = "tests have clocks of their own")]
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]

pub mod load;
pub mod mounts;
pub mod process;

/// A number from the environment: how long a test is to run.
pub fn times(name: &str, short: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(short)
}

/// Numbers that look random and follow from a seed (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}
