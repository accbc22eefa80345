//! Five calls of a trivial tool, one after the other, and ten tokens, 16 clients on new threads.

use crate::bench::{
    cost_row::CostRow,
    load::{Load, Target},
    subject::Subject,
};

use super::{Bench, Costs};

const CLIENTS: usize = 16;
const ROUNDS: usize = 5;
const TOKENS: usize = 10;

pub(super) async fn measure(bench: &Bench<'_>, subject: &Subject) -> anyhow::Result<Costs> {
    let (server, target) = (subject.server()?, Target::gateway(subject.address(), false));
    let load = Load::short_runs(CLIENTS, bench.seconds()).with_rounds(ROUNDS, TOKENS);
    let figures = server.under(&target, &load).await?;
    Ok(Costs {
        rows: vec![CostRow::of(&load.to_string(), &figures)],
        notes: Vec::new(),
    })
}
