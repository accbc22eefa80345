//! Shortens what a model sees of a thread, for the middleware and for who asks by hand.

use super::policy::Policy;
use super::view::View;
use super::write::Writer;
use crate::config::{ContextSize, SummarizationConfig};
use crate::models::{AsideModels, Asker, ModelError, TokenFamily};
use crate::state::{StateUpdate, ThreadState};

/// The share of a window that is left for the notes and what is said around the material.
const READING_SHARE: u64 = 4;
/// The most material for models whose window nobody told, in tokens.
const MOST_MATERIAL: u64 = 100_000;

/// The rules and the writer for conversations with one model.
#[derive(Debug, Clone)]
pub struct Compactor {
    policy: Policy,
    writer: Writer,
    /// The entry of the conversation's model.
    model: String,
}

/// What was shortened.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// What it writes.
    pub update: StateUpdate,
    /// Messages that the model sees no more.
    pub removed: usize,
    /// Messages that it sees as they are.
    pub preserved: usize,
}

impl Compactor {
    /// For conversations with the entry `model`, or with the default one when there is none of that name.
    pub fn new(config: &SummarizationConfig, models: AsideModels, model: Option<&str>) -> Self {
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
        // Whoever writes must be able to read it: the configured model, or the conversation's own when that one fails.
        let narrowest = config
            .model_name
            .as_deref()
            .and_then(window_of)
            .into_iter()
            .chain(window)
            .min();
        let readable = narrowest.map_or(MOST_MATERIAL, |window| window - window / READING_SHARE);
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

    /// The rules.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Shortens when the rules call for it.
    pub async fn when_due(
        &self,
        state: &ThreadState,
        asker: Asker<'_>,
    ) -> Result<Option<Compaction>, ModelError> {
        if self.policy.is_due(&View::of(state)) {
            self.compact(state, None, asker).await
        } else {
            Ok(None)
        }
    }

    /// Shortens to `keep`, or to what the rules keep; `None` where there is too little to shorten.
    pub async fn compact(
        &self,
        state: &ThreadState,
        keep: Option<ContextSize>,
        asker: Asker<'_>,
    ) -> Result<Option<Compaction>, ModelError> {
        let view = View::of(state);
        let Some(at) = self.policy.cut(&view, keep) else {
            return Ok(None);
        };
        let summary = self
            .writer
            .write(view.summary(), view.before(at), &self.model, asker)
            .await?;
        Ok(Some(Compaction {
            update: view.cut_at(at, &summary),
            removed: at,
            preserved: view.kept().len() - at,
        }))
    }

    /// The tokens of what the model sees.
    pub fn tokens(&self, state: &ThreadState) -> u64 {
        let view = View::of(state);
        self.policy.family.tokens(view.size())
    }
}
