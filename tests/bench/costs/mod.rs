//! Cost of a run in scenarios: each file is one scenario with a gateway of its own.

mod dialects;
mod lengths;
mod live;
mod tools;
mod turns;
mod values;

use std::{net::SocketAddr, path::Path};

use anyhow::Context as _;

use super::{
    arguments::Chapter, cost_row::CostRow, load::Target, meter::Server, parts::Parts,
    storage::Storage, subject::Subject,
};

/// Servers and place of a scenario.
pub(super) struct Bench<'a> {
    pub(super) binary: &'a Path,
    /// Place of the gateways' data.
    pub(super) storage: &'a Storage,
    pub(super) parts: &'a Parts,
    /// Smaller loads.
    pub(super) quick: bool,
}

/// Rows of a scenario, and statements that do not fit the table.
#[derive(Debug, Default)]
pub(super) struct Costs {
    pub(super) rows: Vec<CostRow>,
    pub(super) notes: Vec<String>,
}

impl Costs {
    fn add(&mut self, (row, note): (CostRow, String)) {
        self.rows.push(row);
        self.notes.push(note);
    }
}

/// Chapters that are scenarios, in the order of their measurement.
pub(super) const SCENARIOS: [Chapter; 6] = [
    Chapter::Dialects,
    Chapter::Lengths,
    Chapter::Turns,
    Chapter::Values,
    Chapter::Tools,
    Chapter::Live,
];

impl Bench<'_> {
    /// Measures a scenario with a new gateway.
    pub(super) async fn measure(&self, chapter: Chapter) -> anyhow::Result<Costs> {
        let provider = self.parts.provider.address();
        let mut subject = Subject::launch(self.binary, self.storage, provider).await?;
        let costs = match chapter {
            Chapter::Dialects => dialects::measure(self, &subject).await,
            Chapter::Lengths => lengths::measure(self, &mut subject).await,
            Chapter::Turns => turns::measure(self, &mut subject).await,
            Chapter::Values => values::measure(self, &subject).await,
            Chapter::Tools => tools::measure(self, &subject).await,
            Chapter::Live => live::measure(self, &subject).await,
            _ => anyhow::bail!("{chapter:?} is not a scenario of costs"),
        };
        let costs = costs.with_context(|| format!("the gateway printed:\n{}", subject.logs()))?;
        subject.stop().await?;
        Ok(costs)
    }

    /// Returns `few` in a quick measurement, else `many`.
    fn number(&self, few: usize, many: usize) -> usize {
        if self.quick { few } else { many }
    }

    /// Returns the duration of a load in seconds.
    fn seconds(&self) -> u64 {
        if self.quick { 1 } else { 5 }
    }

    fn relay(&self) -> anyhow::Result<(Server, Target)> {
        let relay = &self.parts.relay;
        let address: SocketAddr = relay.address();
        let server = Server {
            pid: relay.pid()?,
            metrics: None,
        };
        Ok((server, Target::relay(address)))
    }
}
