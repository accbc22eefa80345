//! Tools that search and read the web, one provider per file.
//!
//! An entry of `tools[]` selects a provider and its role (`kinds`). Three tools define what a model
//! reads (`web_search`, `web_fetch`, `image_search`); a provider implements one of the three ports
//! in `ports`, with a `Remote` that limits time, response size and retries. `readable` converts
//! pages to Markdown.
//!
//! To add a provider: a file that implements a port, a row in `kinds.rs`, a constructor in
//! `providers.rs` that reads `Settings`, and an arm in `factory.rs`.

mod brave;
mod browserless;
mod charset;
mod crawl4ai;
mod direct;
mod duckduckgo;
mod duckduckgo_images;
mod exa;
mod factory;
mod failure;
mod firecrawl;
mod groundroute;
mod image_search;
mod infoquest;
mod jina;
mod kinds;
mod ports;
mod providers;
mod readable;
mod remote;
mod searxng;
mod serper;
mod settings;
mod tavily;
mod tree;
mod web_fetch;
mod web_search;

pub use factory::WebToolFactory;
pub use image_search::IMAGE_SEARCH;
pub use kinds::name_of;
pub use remote::RetryBudget;
pub use settings::{InvalidWebTool, Variables};
pub use web_fetch::WEB_FETCH;
pub use web_search::WEB_SEARCH;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::tools::web::InvalidWebTool as BadTool;
#[doc(hidden)]
pub use crate::tools::web::RetryBudget as Patience;
#[doc(hidden)]
pub use crate::tools::web::WebToolFactory as WebKit;

#[cfg(test)]
#[path = "web_tests.rs"]
mod tests;
