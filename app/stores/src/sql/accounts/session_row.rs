//! Rows of sessions.

use deerflow_domain::accounts::{Session, TokenHash};
use sea_orm::DbErr;
use uuid::Uuid;

use crate::db::entity::{micros, moment, plain, session};

/// Returns the row of a session.
pub(super) fn row(session: &Session) -> session::Model {
    session::Model {
        session_id: session.id.to_string(),
        user_id: plain(&session.user_id),
        token_hash: plain(session.token_hash.as_str()),
        created_at: micros(session.created_at),
        last_used_at: micros(session.last_used_at),
        ends_at: micros(session.ends_at()),
        persistent: session.persistent,
        user_agent: session.user_agent.as_deref().map(plain),
        address: session.address.as_deref().map(plain),
    }
}

/// Reads a row.
pub(super) fn record(row: session::Model) -> Result<Session, DbErr> {
    let id = Uuid::parse_str(&row.session_id)
        .map_err(|error| DbErr::Custom(format!("a session has a wrong id: {error}")))?;
    Ok(Session {
        id,
        user_id: row.user_id,
        token_hash: TokenHash::stored(row.token_hash),
        created_at: moment(row.created_at),
        last_used_at: moment(row.last_used_at),
        persistent: row.persistent,
        user_agent: row.user_agent,
        address: row.address,
    })
}
