//! Threads of 10, 500 and 1,000 messages against new ones, 16 clients.
//!
//! The messages are written by one update of each thread's state, which stays in memory. The first
//! run on a thread converts the messages for the model; the second one is the next turn of the same
//! thread. The first run after a restart also reads the state from the database.

use crate::bench::{
    cost_row::CostRow,
    figures::Figures,
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

pub(super) async fn measure(bench: &Bench<'_>, subject: &mut Subject) -> anyhow::Result<Costs> {
    let (mut server, mut target) = (subject.server()?, Target::gateway(subject.address(), false));
    // The states of so many threads fit into the cache, whose size is the default one.
    let number = bench.number(64, 128);
    let load = Load::short_runs(CLIENTS, 0).exactly(number);
    let mut costs = Costs::default();
    server.under(&target, &load).await?;
    let (new, _) = threads::create(&server, &target, number).await?;
    let base = server.on(&target, &load, target.runs_on(&new)).await?;
    costs
        .rows
        .push(CostRow::of("new thread, 16 clients", &base));
    let compared = |scenario: String, figures: &Figures| {
        let ratio = figures.cpu_per_run.as_secs_f64() / base.cpu_per_run.as_secs_f64();
        let note = format!("{scenario}, against a new thread: CPU x {ratio:.2}");
        (CostRow::of(&scenario, figures), note)
    };
    let mut longest = Vec::new();
    for messages in LENGTHS {
        let (ids, _) = threads::create(&server, &target, number).await?;
        threads::fill(&target, &ids, messages, TEXT).await?;
        for turn in ["first", "second"] {
            let figures = server.on(&target, &load, target.runs_on(&ids)).await?;
            costs.add(compared(
                format!("{messages} messages, {turn} run"),
                &figures,
            ));
        }
        longest = ids;
    }
    subject.restart().await?;
    (server, target) = (subject.server()?, Target::gateway(subject.address(), false));
    server.under(&target, &load).await?;
    let figures = server.on(&target, &load, target.runs_on(&longest)).await?;
    costs.add(compared(
        "1000 messages, first run after a restart".to_owned(),
        &figures,
    ));
    Ok(costs)
}
