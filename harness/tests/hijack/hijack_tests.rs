//! A thousand cases, each reproducible by its kind and seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use deerflow_harness::sandbox::CommandSandbox;
use deerflow_harness::sandbox::command::bubblewrap::{BubblewrapCommandSandbox, BubblewrapOptions};
use deerflow_harness::testkit::at_once;

use super::attacks::{KINDS, all, case};
use super::{Outcome, play};

/// Number of concurrent cases.
const AT_ONCE: usize = 32;

/// Returns a text from the environment, such as `KIND="planted link"`.
fn setting(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration object"
    )]
    std::env::var(name).ok()
}

/// Opens the command sandbox if this machine supports it.
async fn commands(support: &std::path::Path) -> Option<Arc<dyn CommandSandbox>> {
    let (sandbox, report) = BubblewrapCommandSandbox::open(BubblewrapOptions::new(support)).await;
    if sandbox.is_none() {
        println!(
            "without commands, because the sandbox is not effective here: {}",
            report.missing_text()
        );
    }
    sandbox.map(|sandbox| Arc::new(sandbox) as Arc<dyn CommandSandbox>)
}

#[test]
fn case_table_has_a_thousand_cases() {
    assert_eq!(KINDS.iter().map(|(_, count, _)| count).sum::<u64>(), 1_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hijacked_model_has_no_effect_and_attempts_are_journaled() {
    let support = tempfile::tempdir().unwrap();
    let sandbox = commands(support.path()).await;
    let wanted = (
        setting("KIND"),
        setting("SEED").map(|seed| seed.parse::<u64>().expect("SEED must be a number")),
    );
    let fits = |(kind, seed): &(&'static str, u64)| {
        wanted.0.as_deref().is_none_or(|wanted| wanted == *kind)
            && wanted.1.is_none_or(|wanted| wanted == *seed)
    };
    let cases: Vec<_> = all().filter(fits).collect();
    let mut total: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    let mut broken = Vec::new();
    for some in cases.chunks(AT_ONCE) {
        let outcomes = at_once(some.iter().copied().map(|(kind, seed)| {
            let sandbox = sandbox.clone();
            async move { (kind, seed, play(case(kind, seed), sandbox).await) }
        }));
        for (
            kind,
            seed,
            Outcome {
                violations,
                attempts,
                guarded,
            },
        ) in outcomes.await
        {
            let sums = total.entry(kind).or_default();
            *sums = (sums.0 + 1, sums.1 + attempts, sums.2 + guarded);
            broken
                .extend((!violations.is_empty()).then(|| {
                    format!("KIND={kind:?} SEED={seed} broke: {}", violations.join("; "))
                }));
        }
    }
    for (kind, (cases, attempts, guarded)) in &total {
        println!("{kind}: {cases} cases, {attempts} calls, {guarded} refused or held back");
    }
    assert!(
        broken.is_empty(),
        "{} of {} cases:\n{}",
        broken.len(),
        cases.len(),
        broken.join("\n")
    );
}
