//! Rows of accounts.

use deerflow_domain::accounts::{Account, Email, PasswordHash, ProviderIdentity, Role};
use sea_orm::DbErr;

use crate::db::entity::{account, micros, moment, plain};

/// Returns the row of an account.
pub(super) fn row(account: &Account) -> account::Model {
    let identity = account.identity.as_ref();
    account::Model {
        account_id: plain(&account.id),
        email: plain(account.email.as_str()),
        role: account.role.as_str().to_owned(),
        password_hash: account
            .password_hash
            .as_ref()
            .map(|hash| plain(hash.expose())),
        provider: identity.map(|identity| plain(identity.provider())),
        subject: identity.map(|identity| plain(identity.subject())),
        needs_setup: account.needs_setup,
        disabled_at: account.disabled_at.map(micros),
        created_at: micros(account.created_at),
        updated_at: micros(account.updated_at),
        last_login_at: account.last_login_at.map(micros),
    }
}

/// Reads a row. A role that this version does not know is an error: it must not become another one.
pub(super) fn record(row: account::Model) -> Result<Account, DbErr> {
    let role = row.role.parse::<Role>().map_err(|()| {
        DbErr::Custom(format!(
            "the account {} has the unknown role {:?}",
            row.account_id, row.role
        ))
    })?;
    let identity = row.provider.zip(row.subject);
    Ok(Account {
        id: row.account_id,
        email: Email::stored(row.email),
        role,
        password_hash: row.password_hash.map(PasswordHash::new),
        identity: identity.and_then(|(provider, subject)| ProviderIdentity::new(provider, subject)),
        needs_setup: row.needs_setup,
        disabled_at: row.disabled_at.map(moment),
        created_at: moment(row.created_at),
        updated_at: moment(row.updated_at),
        last_login_at: row.last_login_at.map(moment),
    })
}
