//! `summarization`: shortening a conversation that outgrows its model.

use serde::Deserialize;

use super::check::Checker;
use super::open_keys::OpenKeys;

/// When and how a conversation is shortened.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SummarizationConfig {
    /// Whether conversations are shortened.
    pub enabled: bool,
    /// The model that writes summaries; null uses the run's own.
    pub model_name: Option<String>,
    /// Sizes any of which starts a summary.
    pub trigger: Option<Triggers>,
    /// How much is kept as it is.
    pub keep: ContextSize,
    /// Tokens of transcript given to the summarizer; null for all of it.
    pub trim_tokens_to_summarize: Option<u64>,
    /// The prompt; null uses the built-in one.
    pub summary_prompt: Option<String>,
    /// Tools whose reading of a skill file is remembered.
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
    /// The sizes that start a summary; empty when none is configured.
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

/// One size or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "`{type: tokens|messages|fraction, value: number}` or a list of them"
)]
#[non_exhaustive]
pub enum Triggers {
    /// A single size.
    One(ContextSize),
    /// Any of several sizes.
    Many(Vec<ContextSize>),
}

/// A size of conversation.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ContextSize {
    /// What is counted.
    #[serde(rename = "type")]
    pub unit: ContextUnit,
    /// How much of it; a share of the model's window for [`ContextUnit::Fraction`].
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

/// What a [`ContextSize`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ContextUnit {
    /// A share of the model's context window.
    Fraction,
    /// Tokens.
    Tokens,
    /// Messages.
    Messages,
}
