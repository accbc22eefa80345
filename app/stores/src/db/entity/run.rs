//! Runs, and conditions of their states.

use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;

/// Run.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "runs")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) run_id: String,
    pub(crate) thread_id: String,
    pub(crate) assistant_id: String,
    pub(crate) user_id: Option<String>,
    pub(crate) status: String,
    pub(crate) attempt: i64,
    pub(crate) model_name: Option<String>,
    pub(crate) multitask_strategy: String,
    pub(crate) metadata_json: String,
    pub(crate) kwargs_json: String,
    pub(crate) cancel_action: Option<String>,
    pub(crate) error: Option<String>,
    /// The class of the error.
    pub(crate) error_name: Option<String>,
    pub(crate) stop_reason: Option<String>,
    /// Totals of the run, as far as they were reported.
    pub(crate) completion_json: Option<String>,
    /// Number of the attempt's last commit, 0 before the first.
    pub(crate) last_batch: i64,
    /// The stored request, until the run ends; retained if it is poisoned.
    pub(crate) recipe_json: Option<String>,
    pub(crate) webhook: Option<String>,
    /// The node that executes it.
    pub(crate) owner: Option<String>,
    /// Number of nodes that were lost while they executed it.
    pub(crate) losses: i64,
    /// Position among the unfinished runs of its thread, in the order of admission.
    pub(crate) place: i64,
    /// Earliest start; null if it may start at once.
    pub(crate) due_at: Option<i64>,
    /// First start, by the database's clock.
    pub(crate) started_at: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Finds an active run of a thread, in SQLite's prepared form of [`is_active`].
pub(crate) const HAS_ACTIVE: &str = "\
    SELECT 1 FROM runs WHERE thread_id = ?1 AND status IN ('pending', 'starting', 'running') LIMIT 1";

/// Condition for unfinished runs. Written like the partial index's condition, so that both
/// databases use the index.
pub(crate) fn is_active() -> Expr {
    Expr::cust("runs.status IN ('pending', 'starting', 'running')")
}

/// Condition for runs that a node owns, written like an index's condition.
pub(crate) fn is_owned() -> Expr {
    Expr::cust("runs.status IN ('starting', 'running')")
}

/// Condition for pending runs without a cancel request, written like an index's condition.
pub(crate) fn is_waiting() -> Expr {
    Expr::cust("runs.status = 'pending' AND runs.cancel_action IS NULL")
}

/// Condition for pending runs that were claimed before and released.
pub(crate) fn was_released() -> Expr {
    Expr::cust("(runs.status = 'pending' AND runs.attempt > 1)")
}
