//! `deerflow-lists`: fills a database with threads and measures how long the gateway takes to find them.

#[path = "../lists/mod.rs"]
mod lists;

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    lists::run(lists::Arguments::parse()).await
}
