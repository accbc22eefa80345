//! `summarization`: shortening of conversations that exceed the model's context.

use serde::Deserialize;

use super::check::Checker;
use super::open_keys::OpenKeys;

/// Summarization of conversations.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SummarizationConfig {
    /// Enables summarization.
    pub enabled: bool,
    /// Model that writes summaries; null for the model of the run.
    pub model_name: Option<String>,
    /// Sizes that trigger a summary; reaching one of them is enough.
    pub trigger: Option<Triggers>,
    /// Size of the newest part that stays unchanged.
    pub keep: ContextSize,
    /// Maximum tokens of the transcript that is summarized; null for all of it.
    pub trim_tokens_to_summarize: Option<u64>,
    /// Prompt; null for the built-in one.
    pub summary_prompt: Option<String>,
    /// Has no effect: the tools that read skills are built in.
    pub skill_file_read_tool_names: Vec<String>,
    /// Keys of older configurations.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

impl Default for SummarizationConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            model_name: None,
            trigger: None,
            keep: ContextSize {
                unit: ContextUnit::Messages,
                value: 20.0,
            },
            trim_tokens_to_summarize: Some(4000),
            summary_prompt: None,
            skill_file_read_tool_names: ["read_file", "read", "view", "cat"]
                .map(str::to_owned)
                .to_vec(),
            extra: OpenKeys::default(),
        }
    }
}

impl SummarizationConfig {
    /// Returns the sizes that trigger a summary; empty if none is configured.
    pub fn triggers(&self) -> &[ContextSize] {
        match &self.trigger {
            None => &[],
            Some(Triggers::One(size)) => std::slice::from_ref(size),
            Some(Triggers::Many(sizes)) => sizes,
        }
    }

    pub(super) fn check(&self, check: &mut Checker) {
        check.under("keep", |check| self.keep.check(check));
        check.under("trigger", |check| match &self.trigger {
            None => {}
            Some(Triggers::One(size)) => size.check(check),
            Some(Triggers::Many(sizes)) => {
                for (position, size) in sizes.iter().enumerate() {
                    check.under(position, |check| size.check(check));
                }
            }
        });
    }
}

/// One size or a list of sizes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "`{type: tokens|messages|fraction, value: number}` or a list of them"
)]
#[non_exhaustive]
pub enum Triggers {
    /// Single size.
    One(ContextSize),
    /// Several sizes; reaching one of them is enough.
    Many(Vec<ContextSize>),
}

/// Size of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct ContextSize {
    /// Unit of the value.
    #[serde(rename = "type")]
    pub unit: ContextUnit,
    /// Amount; a share of the model's window for [`ContextUnit::Fraction`].
    pub value: f64,
}

impl ContextSize {
    fn check(&self, check: &mut Checker) {
        match self.unit {
            ContextUnit::Fraction if !(self.value > 0.0 && self.value <= 1.0) => {
                check.refuse("value", self.value, "a share above 0 and up to 1");
            }
            _ => check.positive("value", self.value),
        }
    }
}

/// Unit of a [`ContextSize`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContextUnit {
    /// Share of the model's context window.
    Fraction,
    /// Tokens.
    Tokens,
    /// Messages.
    Messages,
}
