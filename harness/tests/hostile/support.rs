//! What the tests here share: settings, and chance that can be had again.

use std::path::Path;
use std::sync::Arc;

use deerflow_harness::ids::ThreadId;
use deerflow_harness::sandbox::ThreadDirs;
use deerflow_harness::sandbox::safe_fs::Resolver;

/// A number from the environment, such as `SECONDS=60`.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "tests have no configuration to ask")]
    let value = std::env::var(name);
    value.map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")))
}

/// SplitMix64.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("below a usize")
    }

    pub(crate) fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// The folders of a thread of `ann`.
pub(crate) fn dirs_of(home: &Path, thread: &str) -> ThreadDirs {
    let home: Arc<Path> = home.into();
    ThreadDirs::new(home, Resolver::detect(), "ann", &ThreadId::parse(thread).expect("an id"))
}
