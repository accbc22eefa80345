//! `deerflow-bench`: loads the gateway and prints its figures beside those of a bare relay and of the disk.

#[path = "../bench/mod.rs"]
mod bench;

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    bench::run(bench::Arguments::parse()).await
}
