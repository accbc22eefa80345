//! Simulations of many seeds, and of seeds that failed once.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{Counts, SimulationOutcome, simulate};

/// Number of seeds that `make test` simulates.
const SEEDS: u64 = 2_000;

/// Reads a number from the environment, such as `SEED=17`.
fn setting(name: &str) -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no other configuration"
    )]
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")),
    )
}

/// Seeds that violated an invariant, with their outcomes.
#[derive(Debug, Default)]
struct Failures(Vec<(u64, SimulationOutcome)>);

impl Failures {
    fn report(mut self) {
        self.0.sort_by_key(|(seed, _)| *seed);
        let Some((seed, first)) = self.0.first() else {
            return;
        };
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(seed, outcome)| format!("SEED={seed} broke: {}", outcome.violations.join("; ")))
            .collect();
        panic!(
            "{}\n\nthe end of SEED={seed}:\n{}",
            all.join("\n"),
            first.tail.join("\n")
        );
    }
}

#[test]
fn no_seed_violates_an_invariant() {
    if let Some(seed) = setting("SEED") {
        let outcome = simulate(
            seed,
            setting("TAIL").and_then(|tail| usize::try_from(tail).ok()),
        );
        println!(
            "{}\n{:?} {:x}",
            outcome.tail.join("\n"),
            outcome.counts,
            outcome.hash
        );
        assert!(
            outcome.violations.is_empty(),
            "SEED={seed} broke: {}",
            outcome.violations.join("\n")
        );
        return;
    }
    let (from, seeds) = (
        setting("FIRST_SEED").unwrap_or(1),
        setting("SEEDS").unwrap_or(SEEDS),
    );
    let next = AtomicU64::new(from);
    let (failures, total) = (
        Mutex::new(Failures::default()),
        Mutex::new(Counts::default()),
    );
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < from + seeds
                {
                    let outcome = simulate(seed, None);
                    total.lock().add(outcome.counts);
                    if !outcome.violations.is_empty() {
                        failures.lock().0.push((seed, outcome));
                    }
                }
            });
        }
    });
    println!("{seeds} seeds from {from}: {:?}", total.into_inner());
    failures.into_inner().report();
}

#[test]
fn a_seed_is_deterministic() {
    for seed in 1..=20 {
        let (first, second) = (simulate(seed, None), simulate(seed, None));
        assert_eq!(first, second, "SEED={seed}");
        assert_ne!(first.counts.runs, 0);
    }
}
