//! Seeded random numbers: all random choices of a test derive from its seed.

use std::time::Duration;

use parking_lot::Mutex;

/// SplitMix64 generator.
#[derive(Debug)]
pub struct SeededRng(Mutex<u64>);

impl SeededRng {
    /// Creates the generator of a seed.
    pub fn of(seed: u64) -> Self {
        // Mixed twice, so that adjacent seeds are uncorrelated.
        Self(Mutex::new(Self(Mutex::new(seed)).number()))
    }

    /// Returns the next random number.
    pub fn number(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    pub fn below(&self, limit: usize) -> usize {
        usize::try_from(self.number() % limit as u64).expect("below a usize")
    }

    /// Returns `true` with a probability of `times` in a thousand.
    pub fn of_thousand(&self, times: usize) -> bool {
        self.below(1_000) < times
    }

    /// Returns one of the items. The list must not be empty.
    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Returns a duration between these numbers of milliseconds.
    pub fn millis(&self, from: usize, to: usize) -> Duration {
        Duration::from_millis((from + self.below(to - from)) as u64)
    }
}
