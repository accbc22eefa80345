//! `deerflow-bench`: measures the gateway under load and compares it with a bare relay and the
//! disk.

#[path = "../bench/mod.rs"]
mod bench;

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    bench::run(bench::Arguments::parse()).await
}
