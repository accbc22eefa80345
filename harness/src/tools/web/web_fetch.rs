//! `web_fetch`: what a page says.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::failed;
use super::ports::{Page, PageReader};
use crate::net::GuardedClient;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// The tool's name.
pub const WEB_FETCH: &str = "web_fetch";

/// Whose network a page is read from.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    /// That of who guards himself, as a provider does, and this process as it connects: only the address' form is looked at here.
    Guarded(GuardedClient),
    /// One that may be this machine's: names are resolved first.
    Ours(GuardedClient),
}

/// Reads a page.
#[derive(Debug)]
pub(super) struct WebFetch {
    pub(super) reader: Arc<dyn PageReader>,
    pub(super) reach: Reach,
    /// The longest result, in characters.
    pub(super) most_chars: usize,
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
        let judged = match &self.reach {
            Reach::Guarded(guard) => guard.read(url),
            Reach::Ours(guard) => guard.resolve(url).await,
        };
        let judged = judged.map_err(|forbidden| {
            failed(format_args!("this address cannot be read: {forbidden}"))
        })?;
        // What was judged, and not what was said: others may find another host in it.
        let page = self.reader.read(judged.as_str()).await?;
        Ok(ToolOutput::text(rendered(&page, self.most_chars)))
    }
}

fn rendered(page: &Page, most: usize) -> String {
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
    cut(whole, most)
}

/// At most `most` characters, the last of which say that something is missing.
fn cut(text: String, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text;
    }
    let marker = format!("\n\n[cut: the page has {length} characters]");
    let kept = most.saturating_sub(marker.len());
    let end = text
        .char_indices()
        .nth(kept)
        .map_or(text.len(), |(at, _)| at);
    format!("{}{marker}", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_shown_with_its_title_within_the_limit() {
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
