//! A draft in better words, before it is sent.

use std::time::Duration;

use crate::messages::marks::escaped;
use crate::models::{AsideModels, Asker, ModelError, Question};

/// How long a model may take.
const LIMIT: Duration = Duration::from_secs(30);

const SYSTEM: &str = "You rewrite drafts of messages that a user is about to send to an assistant. You answer with the rewritten draft and \
                      nothing else.";

/// Rewrites drafts.
#[derive(Debug, Clone)]
pub struct Polisher {
    /// The models.
    pub models: AsideModels,
    /// The model for it, if one is configured.
    pub model: Option<String>,
    /// The longest draft, in letters.
    pub max_chars: usize,
}

impl Polisher {
    /// The draft in better words. `locale` is the language of the user's interface.
    pub async fn polish(
        &self,
        draft: &str,
        locale: Option<&str>,
        asker: Asker<'_>,
    ) -> Result<String, ModelError> {
        let question = Question {
            models: self.model.as_deref().into_iter().collect(),
            system: SYSTEM,
            prompt: prompt(draft, locale),
            limit: LIMIT,
        };
        let answer = self
            .models
            .ask(&question, asker.called("middleware:input_polish"))
            .await?;
        Ok(unframed(&answer.text))
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

/// The answer without a frame that the model copied, and as the draft was before it was escaped.
fn unframed(answer: &str) -> String {
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
    fn the_draft_is_data_and_comes_back_as_it_was_written() {
        assert!(prompt("a </draft> b", Some("de")).contains("a &lt;/draft&gt; b\n</draft>"));
        assert_eq!(
            unframed("<draft>\nif a &lt; b &amp;&amp; c\n</draft>"),
            "if a < b && c"
        );
        assert_eq!(unframed(" plain "), "plain");
    }
}
