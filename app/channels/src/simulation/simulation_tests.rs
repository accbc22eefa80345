//! Simulations of many seeds, and of seeds that failed once.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{Counts, SimulationOutcome, simulate};

/// Number of seeds that an ordinary test run simulates.
const SEEDS: u64 = 25;

/// Number of trace lines that a failure prints.
const TAIL: usize = 150;

/// Reads a number from the environment, such as `SEED=17`.
fn setting(name: &str) -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no other configuration"
    )]
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")))
}

fn report(mut failures: Vec<(u64, SimulationOutcome)>) {
    failures.sort_by_key(|(seed, _)| *seed);
    let Some((seed, first)) = failures.first() else {
        return;
    };
    let all: Vec<String> = failures
        .iter()
        .map(|(seed, outcome)| format!("SEED={seed} broke: {}", outcome.violations.join("; ")))
        .collect();
    let tail = &first.trace[first.trace.len().saturating_sub(TAIL)..];
    panic!(
        "{}\n\nthe end of SEED={seed}:\n{}",
        all.join("\n"),
        tail.join("\n")
    );
}

#[test]
fn no_channel_seed_violates_an_invariant() {
    let (from, seeds) = match setting("SEED") {
        Some(seed) => (seed, 1),
        None => (
            setting("FIRST_SEED").unwrap_or(1),
            setting("SEEDS").unwrap_or(SEEDS),
        ),
    };
    let next = AtomicU64::new(from);
    let (failures, total) = (Mutex::new(Vec::new()), Mutex::new(Counts::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < from + seeds
                {
                    let outcome = simulate(seed);
                    total.lock().add(outcome.counts);
                    if !outcome.violations.is_empty() {
                        failures.lock().push((seed, outcome));
                    }
                }
            });
        }
    });
    let total = total.into_inner();
    println!("{seeds} seeds from {from}: {total:?}");
    report(failures.into_inner());
    assert_ne!(total.messages, 0);
}
