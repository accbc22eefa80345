//! Measured figures of chat channels on one node.
//!
//! `make channel-figures ONLY=flood` runs one case, without `ONLY` all run. A case prints its
//! figures, and fails if an answer is lost, repeated, out of order or incomplete, or if anything
//! secret or forbidden happens. It never fails because of a speed: the printed load of the machine
//! and the build of the gateway decide about those.

mod ack;
mod arguments;
mod complete;
mod cost;
mod flood;
mod limits;
mod order;
mod outage;
mod report;
mod rig;
mod secrecy;

use clap::Parser as _;

use self::arguments::{Arguments, Case};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    deerflow_tests::process::raise_file_limit()?;
    let mut failed = Vec::new();
    for case in arguments.cases() {
        report::begin(case)?;
        let result = match case {
            Case::Complete => complete::run(&arguments).await,
            Case::Order => order::run(&arguments).await,
            Case::Flood => flood::run(&arguments).await,
            Case::Ack => ack::run(&arguments).await,
            Case::Limits => limits::run(&arguments).await,
            Case::Outage => outage::run(&arguments).await,
            Case::Secrecy => secrecy::run(&arguments).await,
            Case::Cost => cost::run(&arguments).await,
        };
        if let Err(error) = result {
            report::line(&format!("FAILED: {error:#}"))?;
            failed.push(case);
        }
    }
    anyhow::ensure!(failed.is_empty(), "failed: {failed:?}");
    Ok(())
}
