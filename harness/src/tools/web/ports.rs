//! Ports that providers implement for the three tools, with their data types.

use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::tools::ToolError;

/// Search request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Query {
    /// Search terms.
    pub(super) text: String,
    /// Requested number of results; `None` for the provider's configured number.
    pub(super) max_results: Option<usize>,
    /// Image filters: size, type and layout.
    pub(super) size: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) layout: Option<String>,
}

/// Page that a search returned.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Hit {
    pub(super) title: String,
    pub(super) url: String,
    /// Extract of the page.
    pub(super) text: String,
    /// Further fields that only this provider returns.
    pub(super) more: Map<String, Value>,
}

/// Image that a search returned.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ImageHit {
    pub(super) title: String,
    pub(super) image_url: String,
    pub(super) thumbnail_url: String,
    /// Further fields that only this provider returns.
    pub(super) more: Map<String, Value>,
}

/// Content of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Page {
    /// Title of the page; `None` if the text contains it.
    pub(super) title: Option<String>,
    /// Text of the page in Markdown.
    pub(super) text: String,
}

/// Searches for pages.
#[async_trait]
pub(super) trait PageFinder: Send + Sync + Debug + 'static {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError>;
}

/// Searches for images.
#[async_trait]
pub(super) trait ImageFinder: Send + Sync + Debug + 'static {
    async fn find_images(&self, query: &Query) -> Result<Vec<ImageHit>, ToolError>;
}

/// Reads pages.
#[async_trait]
pub(super) trait PageReader: Send + Sync + Debug + 'static {
    async fn read(&self, url: &str) -> Result<Page, ToolError>;
}

/// Returns the text under `key`, or an empty text.
pub(super) fn text_of(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().trim().to_owned()
}

/// Iterates over the objects of a list; empty if the value is not a list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter(|item| item.is_object())
}

impl Hit {
    /// Parses an item whose fields have these names; `None` without an address.
    pub(super) fn read(item: &Value, url: &str, text: &str) -> Option<Self> {
        let hit = Self {
            title: text_of(item, "title"),
            url: text_of(item, url),
            text: text_of(item, text),
            more: Map::new(),
        };
        (!hit.url.is_empty()).then_some(hit)
    }
}
