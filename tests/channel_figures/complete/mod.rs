//! Answers of all lengths in eight scripts: each arrives completely.

mod delivered;
mod letters;
mod rendered;
mod samples;

use crate::arguments::Arguments;

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    rendered::run(arguments)?;
    delivered::run(arguments).await
}
