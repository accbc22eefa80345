//! Reproducible randomness: every choice follows from a seed that is printed.

use std::time::Duration;

/// Returns a number from the environment, such as `ROUNDS=100`.
pub fn setting(name: &str, default: u64) -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration object"
    )]
    let value = std::env::var(name);
    value.map_or(default, |value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}"))
    })
}

/// Returns the seeds of this test's rounds: `ROUNDS` of them, from `SEED` on.
pub fn seeds(rounds: u64) -> impl Iterator<Item = u64> {
    let first = setting("SEED", 1);
    (0..setting("ROUNDS", rounds)).map(move |round| first + round)
}

/// SplitMix64 generator.
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Creates the generator of a seed.
    pub fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("below a usize")
    }

    /// Returns `true` with a probability of `parts` in a thousand.
    pub fn happens(&mut self, parts: usize) -> bool {
        self.below(1_000) < parts
    }

    /// Returns a random number of milliseconds from `from` to below `to`.
    pub fn millis(&mut self, from: usize, to: usize) -> Duration {
        Duration::from_millis((from + self.below(to - from)) as u64)
    }
}
