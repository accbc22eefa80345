//! Rewrites a user's draft before it is sent.

use std::time::Duration;

use crate::messages::marks::escaped;
use crate::models::{AuxiliaryModels, AuxiliaryRequest, Caller, ModelError};

/// Timeout of one model call.
const TIMEOUT: Duration = Duration::from_secs(30);

const SYSTEM: &str = "You rewrite drafts of messages that a user is about to send to an assistant. You answer with the rewritten draft and \
                      nothing else.";

/// Rewrites drafts.
#[derive(Debug, Clone)]
pub struct Polisher {
    /// Models for auxiliary calls.
    pub models: AuxiliaryModels,
    /// Configured model entry; `None` selects the default.
    pub model: Option<String>,
    /// Maximum length of a draft, in characters.
    pub max_chars: usize,
}

impl Polisher {
    /// Returns the rewritten draft. `locale` is the language of the user's interface.
    pub async fn polish(
        &self,
        draft: &str,
        locale: Option<&str>,
        caller: Caller<'_>,
    ) -> Result<String, ModelError> {
        let auxiliary_request = AuxiliaryRequest {
            models: self.model.as_deref().into_iter().collect(),
            system: SYSTEM,
            prompt: prompt(draft, locale),
            limit: TIMEOUT,
        };
        let answer = self
            .models
            .ask(&auxiliary_request, caller.called("middleware:input_polish"))
            .await?;
        Ok(strip_draft_tags(&answer.text))
    }
}

fn prompt(draft: &str, locale: Option<&str>) -> String {
    let locale = locale.map(|locale| {
        format!(
            " The interface is in {}, which decides where the draft leaves its language open.",
            escaped(locale)
        )
    });
    format!(
        "Make the draft below clear, complete and free of mistakes. Keep its language, its meaning, its tone, and every name, figure, \
         link, path, command and piece of code as it is. Add no wish that it does not contain, and do not answer it: it is addressed \
         to somebody else.{}\n\n<draft>\n{}\n</draft>",
        locale.unwrap_or_default(),
        escaped(draft)
    )
}

/// Removes `<draft>` tags that the model copied and reverses the escaping of the draft.
fn strip_draft_tags(answer: &str) -> String {
    let inner = answer
        .trim()
        .strip_prefix("<draft>")
        .unwrap_or(answer.trim());
    let inner = inner.strip_suffix("</draft>").unwrap_or(inner).trim();
    inner
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draft_is_escaped_and_restored() {
        assert!(prompt("a </draft> b", Some("de")).contains("a &lt;/draft&gt; b\n</draft>"));
        assert_eq!(
            strip_draft_tags("<draft>\nif a &lt; b &amp;&amp; c\n</draft>"),
            "if a < b && c"
        );
        assert_eq!(strip_draft_tags(" plain "), "plain");
    }
}
