//! Both dialects at 16 clients on new threads, one after the other in one process.

use crate::bench::{
    cost_row::CostRow,
    load::{Load, Target},
    subject::Subject,
};

use super::{Bench, Costs};

const CLIENTS: usize = 16;

pub(super) async fn measure(bench: &Bench<'_>, subject: &Subject) -> anyhow::Result<Costs> {
    let (server, load) = (
        subject.server()?,
        Load::short_runs(CLIENTS, bench.seconds()),
    );
    let mut costs = Costs::default();
    for (name, target) in [
        ("DeerFlow", Target::gateway(subject.address(), false)),
        ("LangGraph Platform", Target::platform(subject.address())),
    ] {
        let figures = server.under(&target, &load).await?;
        costs.rows.extend(CostRow::with_threads(
            &format!("{load}, dialect of {name}"),
            &figures,
        ));
    }
    Ok(costs)
}
