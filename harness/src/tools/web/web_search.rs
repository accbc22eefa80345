//! `web_search`: searches the web for pages.

use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::failure::failed;
use super::ports::{Hit, PageFinder, Query};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Name of the tool.
pub const WEB_SEARCH: &str = "web_search";

/// Format of the results. It differs between providers for historical reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// List of `{title, url, snippet}`.
    List,
    /// Object `{query, total_results, results}` with `{title, url, content}`; an error if there are
    /// no results.
    Object,
}

/// Searches the web.
#[derive(Debug)]
pub(super) struct WebSearch<A> {
    finder: Arc<dyn PageFinder>,
    form: Form,
    arguments: PhantomData<fn(A)>,
}

impl<A> WebSearch<A> {
    pub(super) fn new(finder: Arc<dyn PageFinder>, form: Form) -> Self {
        Self {
            finder,
            form,
            arguments: PhantomData,
        }
    }
}

/// Arguments of `web_search`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SearchArgs {
    /// What you look for, as you would type it into a search engine.
    query: String,
}

/// Arguments of `web_search` where the provider lets say how many results are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CountedSearchArgs {
    /// What you look for, as you would type it into a search engine.
    query: String,
    /// How many results you want.
    #[serde(default)]
    #[schemars(with = "usize", extend("default" = 5))]
    max_results: Option<usize>,
}

impl From<SearchArgs> for Query {
    fn from(args: SearchArgs) -> Self {
        Self {
            text: args.query,
            ..Self::default()
        }
    }
}

impl From<CountedSearchArgs> for Query {
    fn from(args: CountedSearchArgs) -> Self {
        Self {
            text: args.query,
            max_results: args.max_results,
            ..Self::default()
        }
    }
}

impl<A: Into<Query> + DeserializeOwned + JsonSchema + Send + 'static> Tool for WebSearch<A> {
    type Args = A;

    fn name(&self) -> &str {
        WEB_SEARCH
    }

    fn description(&self) -> &str {
        "Search the web. Gives titles, addresses and short extracts of pages. Use it for what is newer than you are, for facts that \
         must be right, and to find addresses to read with web_fetch; an extract is rarely enough to rely on. Not for files of the \
         user."
    }

    fn effect(&self, _args: &A) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: A, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let query = usable(args.into())?;
        let hits = self.finder.find(&query).await?;
        Ok(ToolOutput::text(pretty(&rendered(&query, hits, self.form))))
    }
}

/// Rejects an empty query.
pub(super) fn usable(query: Query) -> Result<Query, ToolError> {
    if query.text.trim().is_empty() {
        Err(failed("query is empty"))
    } else {
        Ok(query)
    }
}

fn rendered(query: &Query, hits: Vec<Hit>, form: Form) -> Value {
    let text_key = match form {
        Form::List => "snippet",
        Form::Object => "content",
    };
    let items = hits.into_iter().map(|hit| {
        let mut item = json!({ "title": hit.title, "url": hit.url, text_key: hit.text });
        if let Some(fields) = item.as_object_mut() {
            fields.extend(hit.more);
        }
        item
    });
    let items: Vec<Value> = items.collect();
    match form {
        Form::List => Value::Array(items),
        Form::Object if items.is_empty() => no_results(query),
        Form::Object => {
            json!({ "query": query.text, "total_results": items.len(), "results": items })
        }
    }
}

/// Result of a search without matches.
pub(super) fn no_results(query: &Query) -> Value {
    json!({ "error": "nothing was found; try other words", "query": query.text })
}

/// Formats JSON with an indentation of two and without unnecessary escapes.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}
