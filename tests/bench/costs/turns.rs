//! A thread that grows by 250 runs of one client: its first ten runs, its last ten, and its bytes.

use crate::bench::{
    cost_row::CostRow,
    files,
    load::{Load, Requests, Target},
    subject::Subject,
    threads,
};

use super::{Bench, Costs};

/// Runs of other threads before them.
const WARM_UP: usize = 20;
/// Runs at the beginning and at the end that are compared.
const COMPARED: usize = 10;

pub(super) async fn measure(bench: &Bench<'_>, subject: &mut Subject) -> anyhow::Result<Costs> {
    // A start begins with an empty write-ahead log, so the size is that of the rows.
    subject.restart().await?;
    let before = files::size_of(subject.home())?;
    let (server, target) = (subject.server()?, Target::gateway(subject.address(), false));
    let turns = bench.number(60, 250);
    let one = Load::short_runs(1, 0);
    let (ids, _) = threads::create(&server, &target, WARM_UP + 1).await?;
    let warm_up = one.clone().exactly(WARM_UP);
    server
        .on(&target, &warm_up, target.runs_on(&ids[1..]))
        .await?;
    let runs_of = |turns: usize| -> Requests { target.runs_on(&vec![ids[0].clone(); turns]) };
    let compared = one.clone().exactly(COMPARED);
    let between = turns - 2 * COMPARED;
    let first = server.on(&target, &compared, runs_of(COMPARED)).await?;
    server
        .on(&target, &one.exactly(between), runs_of(between))
        .await?;
    let last = server.on(&target, &compared, runs_of(COMPARED)).await?;
    subject.restart().await?;
    let stored = files::size_of(subject.home())?.saturating_sub(before);
    let ratio = last.cpu_per_run.as_secs_f64() / first.cpu_per_run.as_secs_f64();
    Ok(Costs {
        rows: vec![
            CostRow::of(&format!("runs 1 to {COMPARED} of one thread"), &first),
            CostRow::of(
                &format!("runs {} to {turns} of one thread", turns - COMPARED + 1),
                &last,
            ),
        ],
        notes: vec![format!(
            "{turns} runs of one thread: last {COMPARED} against first {COMPARED} CPU x {ratio:.2}; \
             the data folder grew by {:.2} MB, {WARM_UP} runs of other threads included",
            stored as f64 / 1e6
        )],
    })
}
