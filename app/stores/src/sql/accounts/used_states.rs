//! Used states of sign-ins over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::accounts::{TokenHash, UsedStateStore};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::DatabaseTransaction;

use super::SqlAccountStore;
use crate::db::entity::micros;
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::tx::TxFuture;

const FORGET: &str = "DELETE FROM used_states WHERE ends_at <= ?";

const USE: &str = "\
    INSERT INTO used_states (state_hash, ends_at) VALUES (?, ?) \
    ON CONFLICT (state_hash) DO NOTHING RETURNING 'used'";

/// Use of a state.
struct Use {
    state: TokenHash,
    at: i64,
    until: i64,
}

#[async_trait]
impl UsedStateStore for SqlAccountStore {
    async fn use_state(
        &self,
        state: &TokenHash,
        at: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let work = Use {
            state: state.clone(),
            at: micros(at),
            until: micros(until),
        };
        self.db.writes().create(work, use_state).await
    }
}

fn use_state<'a>(tx: &'a DatabaseTransaction, work: &'a Use) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add(FORGET, [work.at.into()]);
        statements.add(USE, [work.state.as_str().into(), work.until.into()]);
        let rows = statements.run(tx).await?;
        Ok(tagged(&rows, "used").is_some())
    })
}
