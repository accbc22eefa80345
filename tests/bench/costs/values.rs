//! Bytes of a `values` stream on threads of 500 messages with texts of 1 KB.

use crate::bench::{
    cost_row::CostRow,
    load::{Load, Target},
    subject::Subject,
    threads,
};

use super::{Bench, Costs};

const MESSAGES: usize = 500;
/// Bytes of each text.
const TEXT: usize = 1_000;

pub(super) async fn measure(bench: &Bench<'_>, subject: &Subject) -> anyhow::Result<Costs> {
    let (server, target) = (subject.server()?, Target::gateway(subject.address(), false));
    let number = bench.number(8, 32);
    let load = Load::short_runs(1, 0).exactly(number).in_mode("values");
    let (ids, _) = threads::create(&server, &target, number).await?;
    threads::fill(&target, &ids, MESSAGES, TEXT).await?;
    let figures = server.on(&target, &load, target.runs_on(&ids)).await?;
    let name = format!("values stream of {MESSAGES} messages");
    Ok(Costs {
        notes: vec![format!(
            "{name}: {:.2} MB per run",
            figures.bytes_per_run as f64 / 1e6
        )],
        rows: vec![CostRow::of(&name, &figures)],
    })
}
