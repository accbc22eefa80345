//! A thousand streams with a token every 10 ms: in a new process, and again in the same one.

use crate::bench::{
    cost_row::CostRow,
    load::{Load, Requests, Target},
    subject::Subject,
    threads,
};

use super::{Bench, Costs};

pub(super) async fn measure(bench: &Bench<'_>, subject: &Subject) -> anyhow::Result<Costs> {
    let (server, target) = (subject.server()?, Target::gateway(subject.address(), false));
    let load = Load::live(bench.number(100, 200));
    let mut costs = Costs::default();
    let (relay, relay_target) = bench.relay()?;
    let path = Requests::Same(relay_target.path);
    let floor = relay.on(&relay_target, &load, path).await?;
    costs
        .rows
        .push(CostRow::of(&format!("{load}, relay"), &floor));
    for process in ["new process", "same process again"] {
        let (ids, _) = threads::create(&server, &target, load.runs_at_most()).await?;
        let figures = server.on(&target, &load, target.runs_on(&ids)).await?;
        costs.notes.push(format!(
            "{load}, {process}: end p50 x {:.2} of the relay, resident at most {:.0} MB",
            figures.end.p50.as_secs_f64() / floor.end.p50.as_secs_f64(),
            figures.resident as f64 / 1e6
        ));
        costs
            .rows
            .push(CostRow::of(&format!("{load}, {process}"), &figures));
    }
    Ok(costs)
}
