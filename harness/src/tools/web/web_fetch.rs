//! `web_fetch`: reads a page.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::failure::failed;
use super::ports::{Page, PageReader};
use crate::net::GuardedClient;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Name of the tool.
pub const WEB_FETCH: &str = "web_fetch";

/// Check of an address before it is passed to a reader.
#[derive(Debug, Clone)]
pub(super) enum UrlCheck {
    /// Checks only the form of the address: the reader is outside this network, or checks each
    /// address when it connects.
    Syntax(GuardedClient),
    /// Resolves the host name and checks its addresses: the reader may be in this machine's
    /// network.
    Resolve(GuardedClient),
}

/// Reads a page.
#[derive(Debug)]
pub(super) struct WebFetch {
    pub(super) reader: Arc<dyn PageReader>,
    pub(super) url_check: UrlCheck,
    /// Maximum length of a result, in characters.
    pub(super) max_chars: usize,
}

/// Arguments of `web_fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct FetchArgs {
    /// The page's address, beginning with http:// or https://, exactly as the user or a result gave it.
    url: String,
}

impl Tool for WebFetch {
    type Args = FetchArgs;

    fn name(&self) -> &str {
        WEB_FETCH
    }

    fn description(&self) -> &str {
        "Read a page of the web: gives its title and main text as Markdown, the beginning of it where it is long. Use it only with \
         addresses that the user gave or that a result named, letter by letter: do not guess them, add no www, and keep http:// or \
         https://. Pages that ask for a login cannot be read."
    }

    fn effect(&self, _args: &FetchArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: FetchArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let url = args.url.trim();
        let checked = match &self.url_check {
            UrlCheck::Syntax(guard) => guard.read(url),
            UrlCheck::Resolve(guard) => guard.resolve(url).await,
        };
        let checked = checked.map_err(|forbidden| {
            failed(format_args!("this address cannot be read: {forbidden}"))
        })?;
        // The checked URL is passed instead of the original text: another parser could extract
        // another host from the text.
        let page = self.reader.read(checked.as_str()).await?;
        Ok(ToolOutput::text(rendered(&page, self.max_chars)))
    }
}

fn rendered(page: &Page, max_chars: usize) -> String {
    let text = page.text.trim();
    let text = if text.is_empty() {
        "No content could be read from this page."
    } else {
        text
    };
    let whole = match page.title.as_deref().map(str::trim) {
        None => text.to_owned(),
        Some("") => format!("# Untitled\n\n{text}"),
        Some(title) => format!("# {title}\n\n{text}"),
    };
    cut(whole, max_chars)
}

/// Shortens a text to at most `max_chars` characters, ending with a note that the text is cut.
fn cut(text: String, max_chars: usize) -> String {
    let length = text.chars().count();
    if length <= max_chars {
        return text;
    }
    let marker = format!("\n\n[cut: the page has {length} characters]");
    let retained = max_chars.saturating_sub(marker.len());
    let end = text
        .char_indices()
        .nth(retained)
        .map_or(text.len(), |(at, _)| at);
    format!("{}{marker}", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_title_and_fits_limit() {
        let page = |title: Option<&str>, text: &str| Page {
            title: title.map(str::to_owned),
            text: text.to_owned(),
        };
        assert_eq!(rendered(&page(Some("T"), " text "), 99), "# T\n\ntext");
        assert_eq!(rendered(&page(Some(""), "text"), 99), "# Untitled\n\ntext");
        assert_eq!(rendered(&page(None, "# T\n\ntext"), 99), "# T\n\ntext");
        assert_eq!(
            rendered(&page(Some("T"), " "), 99),
            "# T\n\nNo content could be read from this page."
        );
        let long = rendered(&page(Some("T"), &"ü".repeat(5_000)), 4_096);
        assert!(
            long.chars().count() <= 4_096
                && long.ends_with("ü\n\n[cut: the page has 5005 characters]"),
            "{}",
            long.chars().count()
        );
    }
}
