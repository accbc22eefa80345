//! Account stores over SQL: one type implements all ports of accounts.

mod account_row;
mod account_store;
mod account_writes;
mod attempts;
mod audit;
mod audit_row;
mod limits;
mod session_row;
mod session_writes;
mod sessions;
mod used_states;

use std::sync::Arc;

use deerflow_domain::accounts::AccountStores;
use sea_orm::sea_query::{Expr, SimpleExpr};

use crate::db::connect::Database;

pub(super) use audit_row::append;

/// Returns the condition that the user in a column, as `table.column`, has no disabled account.
pub(super) fn owner_is_enabled(user: &'static str) -> SimpleExpr {
    Expr::cust(format!(
        "NOT EXISTS (SELECT 1 FROM accounts WHERE accounts.account_id = {user} AND accounts.disabled_at IS NOT NULL)"
    ))
}

/// Account stores over SQL.
#[derive(Debug, Clone)]
pub struct SqlAccountStore {
    db: Database,
}

impl SqlAccountStore {
    /// Creates stores over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    /// Returns this store as all account ports.
    pub fn stores(self) -> AccountStores {
        let stores = Arc::new(self);
        AccountStores {
            accounts: stores.clone(),
            sessions: stores.clone(),
            limits: stores.clone(),
            used_states: stores.clone(),
            audit: stores,
        }
    }
}
