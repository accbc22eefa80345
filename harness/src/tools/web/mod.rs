//! Tools that search and read the web, one provider per file.
//!
//! An entry of `tools[]` names a provider and what is wanted of it (`kinds`). The three tools say what a model reads
//! (`web_search`, `web_fetch`, `image_search`); a provider answers one of the three ports of `ports`, through a `Remote`
//! that bounds time, size and tries. Pages become Markdown in `readable`.
//!
//! To add a provider: a file that implements a port and is made from `Settings`, a row in `kinds.rs`, an arm in `kit.rs`.

mod brave;
mod browserless;
mod charset;
mod crawl4ai;
mod direct;
mod duckduckgo;
mod duckduckgo_images;
mod exa;
mod firecrawl;
mod groundroute;
mod image_search;
mod infoquest;
mod jina;
mod kinds;
mod kit;
mod ports;
mod readable;
mod remote;
mod searxng;
mod serper;
mod settings;
mod tavily;
mod tree;
mod web_fetch;
mod web_search;

pub use image_search::IMAGE_SEARCH;
pub use kinds::name_of;
pub use kit::{BadTool, Variables, WebKit};
pub use remote::Patience;
pub use web_fetch::WEB_FETCH;
pub use web_search::WEB_SEARCH;

use remote::Remote;
use settings::Settings;

use super::ToolError;

/// The text of a failure, for the model.
fn failed(why: impl std::fmt::Display) -> ToolError {
    ToolError::for_model(format!("Error: {why}"))
}

#[cfg(test)]
#[path = "web_tests.rs"]
mod tests;
