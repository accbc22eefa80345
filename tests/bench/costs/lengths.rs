//! Threads of 10, 500 and 1,000 messages against new ones, 16 clients.
//!
//! The messages are written by one update of each thread's state. The first run on a thread reads
//! this state; the second one is the next turn of the same thread.

use crate::bench::{
    cost_row::CostRow,
    load::{Load, Target},
    subject::Subject,
    threads,
};

use super::{Bench, Costs};

const CLIENTS: usize = 16;
/// Messages of a thread.
const LENGTHS: [usize; 3] = [10, 500, 1_000];
/// Bytes of each text.
const TEXT: usize = 200;

pub(super) async fn measure(bench: &Bench<'_>, subject: &Subject) -> anyhow::Result<Costs> {
    let (server, target) = (subject.server()?, Target::gateway(subject.address(), false));
    let number = bench.number(64, 320);
    let load = Load::short_runs(CLIENTS, 0).exactly(number);
    let mut costs = Costs::default();
    server.under(&target, &load).await?;
    let (new, _) = threads::create(&server, &target, number).await?;
    let base = server.on(&target, &load, target.runs_on(&new)).await?;
    costs
        .rows
        .push(CostRow::of("new thread, 16 clients", &base));
    for messages in LENGTHS {
        let (ids, _) = threads::create(&server, &target, number).await?;
        threads::fill(&target, &ids, messages, TEXT).await?;
        for turn in ["first", "second"] {
            let figures = server.on(&target, &load, target.runs_on(&ids)).await?;
            let ratio = figures.cpu_per_run.as_secs_f64() / base.cpu_per_run.as_secs_f64();
            costs.rows.push(CostRow::of(
                &format!("{messages} messages, {turn} run"),
                &figures,
            ));
            costs.notes.push(format!(
                "{turn} run on a thread of {messages} messages against a new thread: CPU x {ratio:.2}"
            ));
        }
    }
    Ok(costs)
}
