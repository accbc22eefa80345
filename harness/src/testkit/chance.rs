//! Chance that can be had again: every choice of a test comes out of its seed, in order.

use std::time::Duration;

use parking_lot::Mutex;

/// SplitMix64.
#[derive(Debug)]
pub struct Chance(Mutex<u64>);

impl Chance {
    /// The choices that belong to a seed.
    pub fn of(seed: u64) -> Self {
        // Twice, so that seeds beside each other have nothing in common.
        Self(Mutex::new(Self(Mutex::new(seed)).number()))
    }

    /// Any number.
    pub fn number(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub fn below(&self, limit: usize) -> usize {
        usize::try_from(self.number() % limit as u64).expect("below a usize")
    }

    /// So many times out of a thousand.
    pub fn of_thousand(&self, times: usize) -> bool {
        self.below(1_000) < times
    }

    /// One of these, of which there are some.
    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// So many milliseconds.
    pub fn millis(&self, from: usize, to: usize) -> Duration {
        Duration::from_millis((from + self.below(to - from)) as u64)
    }
}
