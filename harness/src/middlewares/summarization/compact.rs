//! Compacts the part of a thread that the model sees, for the middleware and for manual requests.

use super::policy::Policy;
use super::view::View;
use super::write::Writer;
use crate::config::{ContextSize, SummarizationConfig};
use crate::models::{AuxiliaryModels, Caller, ModelError, TokenFamily};
use crate::state::{StateUpdate, ThreadState};

/// Divisor for the share of the window that is reserved for the summary and the prompt.
const READING_SHARE: u64 = 4;
/// Maximum size of the material for models without a known window, in tokens.
const MAX_MATERIAL_TOKENS: u64 = 100_000;

/// Policy and summary writer for conversations with one model.
#[derive(Debug, Clone)]
pub struct Compactor {
    policy: Policy,
    writer: Writer,
    /// Entry of the conversation's model.
    model: String,
}

/// Result of a compaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// State changes to apply.
    pub update: StateUpdate,
    /// Number of messages that the model no longer sees.
    pub removed: usize,
    /// Number of messages that the model still sees unchanged.
    pub preserved: usize,
}

impl Compactor {
    /// Creates a compactor for conversations with the entry `model`, or with the default entry if
    /// there is none of that name.
    pub fn new(config: &SummarizationConfig, models: AuxiliaryModels, model: Option<&str>) -> Self {
        let known = model.filter(|name| models.catalog.entry(name).is_some());
        let info = models
            .catalog
            .get_or_default(known)
            .ok()
            .map(|model| model.info().clone());
        let family = info.as_ref().map(TokenFamily::of).unwrap_or_default();
        let model = info.map(|info| info.name).unwrap_or_default();
        let window_of = |name: &str| {
            models
                .catalog
                .entry(name)
                .and_then(|entry| entry.context_window)
        };
        let window = window_of(&model);
        // The material must fit into both candidate models: the configured one, and the
        // conversation's own as fallback.
        let narrowest = config
            .model_name
            .as_deref()
            .and_then(window_of)
            .into_iter()
            .chain(window)
            .min();
        let readable = narrowest.map_or(MAX_MATERIAL_TOKENS, |window| {
            window - window / READING_SHARE
        });
        let trim = config
            .trim_tokens_to_summarize
            .map_or(readable, |trim| trim.min(readable));
        Self {
            policy: Policy::new(config, window, family),
            writer: Writer {
                models,
                model_name: config.model_name.clone(),
                trim,
                prompt: config.summary_prompt.clone(),
                family,
            },
            model,
        }
    }

    /// The compaction policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Compacts the thread if the policy requires it.
    pub async fn when_due(
        &self,
        state: &ThreadState,
        caller: Caller<'_>,
    ) -> Result<Option<Compaction>, ModelError> {
        if self.policy.is_due(&View::of(state)) {
            self.compact(state, None, caller).await
        } else {
            Ok(None)
        }
    }

    /// Compacts the thread down to `keep`, or to the configured size; `None` if there is too little
    /// to compact.
    pub async fn compact(
        &self,
        state: &ThreadState,
        keep: Option<ContextSize>,
        caller: Caller<'_>,
    ) -> Result<Option<Compaction>, ModelError> {
        let view = View::of(state);
        let Some(at) = self.policy.cut(&view, keep) else {
            return Ok(None);
        };
        let summary = self
            .writer
            .write(view.summary(), view.before(at), &self.model, caller)
            .await?;
        Ok(Some(Compaction {
            update: view.cut_at(at, &summary),
            removed: at,
            preserved: view.kept().len() - at,
        }))
    }

    /// Estimates the tokens of the messages that the model sees.
    pub fn tokens(&self, state: &ThreadState) -> u64 {
        let view = View::of(state);
        self.policy.family.tokens(view.size())
    }
}
