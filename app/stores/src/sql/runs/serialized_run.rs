//! New run with the serialized texts of its row.

use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::NewRun;
use sea_orm::DbBackend;

use super::large_texts::{KWARGS, RECIPE, STORED_APART, is_large};
use super::stored_request::request_text;
use crate::db::entity::{micros, plain, run};
use crate::db::json::json_text;

/// New run whose request is serialized.
#[derive(Debug)]
pub(super) struct SerializedRun {
    /// The run.
    pub(super) new: NewRun,
    /// JSON of the stored request.
    recipe: String,
    /// `true` if large texts are stored in rows of their own.
    splits_texts: bool,
}

impl SerializedRun {
    /// Serializes the request of a run. This precedes the transaction, because it takes up to 100 ms
    /// for a large request.
    pub(super) fn new(new: NewRun, backend: DbBackend) -> Self {
        Self {
            recipe: request_text(&new.recipe, echo(&new)),
            splits_texts: backend == DbBackend::Sqlite,
            new,
        }
    }

    /// Returns the value of `kwargs_json`: the request as clients see it.
    pub(super) fn kwargs_json(&self) -> &str {
        self.column(echo(&self.new))
    }

    /// Returns the value of `recipe_json`: the stored request.
    pub(super) fn recipe_json(&self) -> &str {
        self.column(&self.recipe)
    }

    /// Returns the texts that are stored in rows of their own, each with the name of its column.
    pub(super) fn texts_apart(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let texts = [(KWARGS, echo(&self.new)), (RECIPE, &self.recipe)];
        texts.into_iter().filter(|(_, text)| self.is_apart(text))
    }

    fn is_apart(&self, text: &str) -> bool {
        self.splits_texts && is_large(text)
    }

    fn column<'a>(&self, text: &'a str) -> &'a str {
        if self.is_apart(text) {
            STORED_APART
        } else {
            text
        }
    }

    /// Builds the row.
    pub(super) fn row(&self, status: RunStatus) -> run::Model {
        run::Model {
            kwargs_json: self.kwargs_json().to_owned(),
            recipe_json: Some(self.recipe_json().to_owned()),
            ..self.row_without_texts(status)
        }
    }

    /// Builds the row without [`kwargs_json`](Self::kwargs_json) and
    /// [`recipe_json`](Self::recipe_json), which may be long.
    pub(super) fn row_without_texts(&self, status: RunStatus) -> run::Model {
        let new = &self.new;
        let request = new.request();
        run::Model {
            run_id: new.run_id.to_string(),
            thread_id: new.thread_id.to_string(),
            assistant_id: plain(&request.assistant),
            user_id: new.user_id.clone(),
            status: status.as_str().to_owned(),
            attempt: 1,
            model_name: request.model_name().map(plain),
            multitask_strategy: request.multitask.as_str().to_owned(),
            metadata_json: json_text(&request.metadata),
            kwargs_json: String::new(),
            cancel_action: None,
            error: None,
            error_name: None,
            stop_reason: None,
            completion_json: None,
            last_batch: 0,
            recipe_json: None,
            webhook: request.webhook.as_deref().map(plain),
            owner: status.is_owned().then(|| new.owner.to_string()),
            losses: 0,
            place: 0,
            due_at: (new.created_at > new.at).then(|| micros(new.created_at)),
            started_at: None,
            created_at: micros(new.created_at),
            updated_at: micros(new.at),
        }
    }
}

/// Returns the JSON of the request as clients see it.
fn echo(new: &NewRun) -> &str {
    new.request().presentation.request_echo.text()
}
