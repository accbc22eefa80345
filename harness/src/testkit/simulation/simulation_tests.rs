//! Stories of many seeds, and one of each kind that once went wrong.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::{Counts, Story, simulate};

/// Seeds that every `make test` plays.
const SEEDS: u64 = 2_000;

/// A number from the environment, such as `SEED=17`.
fn setting(name: &str) -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration to ask"
    )]
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")),
    )
}

/// The numbers of the seeds that broke a promise, and the end of the first one's trace.
#[derive(Debug, Default)]
struct Failures(Vec<(u64, Story)>);

impl Failures {
    fn report(mut self) {
        self.0.sort_by_key(|(seed, _)| *seed);
        let Some((seed, first)) = self.0.first() else {
            return;
        };
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(seed, story)| format!("SEED={seed} broke: {}", story.violations.join("; ")))
            .collect();
        panic!(
            "{}\n\nthe end of SEED={seed}:\n{}",
            all.join("\n"),
            first.tail.join("\n")
        );
    }
}

#[test]
fn no_seed_breaks_a_promise() {
    if let Some(seed) = setting("SEED") {
        let story = simulate(
            seed,
            setting("TAIL").and_then(|tail| usize::try_from(tail).ok()),
        );
        println!(
            "{}\n{:?} {:x}",
            story.tail.join("\n"),
            story.counts,
            story.hash
        );
        assert!(
            story.violations.is_empty(),
            "SEED={seed} broke: {}",
            story.violations.join("\n")
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
                    let story = simulate(seed, None);
                    total.lock().add(story.counts);
                    if !story.violations.is_empty() {
                        failures.lock().0.push((seed, story));
                    }
                }
            });
        }
    });
    println!("{seeds} seeds from {from}: {:?}", total.into_inner());
    failures.into_inner().report();
}

#[test]
fn a_seed_always_tells_the_same_story() {
    for seed in 1..=20 {
        let (first, second) = (simulate(seed, None), simulate(seed, None));
        assert_eq!(first, second, "SEED={seed}");
        assert_ne!(first.counts.runs, 0);
    }
}
