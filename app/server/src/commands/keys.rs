//! `deerflow keys`: creates, lists and revokes API keys.

use std::io::Write;

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use deerflow_accounts::Operator;
use deerflow_domain::accounts::{AccountStore, AuditAction, NewAuditEntry, Role};
use deerflow_domain::api_keys::{ApiKey, Rights, issue};
use harness::clock::iso;
use secrecy::ExposeSecret;

use super::users::find_account;
use crate::cli::KeysCommand;
use crate::wiring::keys::KeyStores;

/// Runs the command on `stores` and writes its output to `out`.
pub async fn run(
    command: &KeysCommand,
    stores: &KeyStores,
    now: DateTime<Utc>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let (store, accounts) = (&*stores.keys, &*stores.accounts.accounts);
    match command {
        KeysCommand::Create {
            user,
            name,
            expires,
            admin,
            ..
        } => {
            let expires = expires
                .as_deref()
                .map(|text| parse_expiry(text, now))
                .transpose()?;
            let user = owner_of(user, *admin, accounts).await?;
            let rights = if *admin { Rights::Admin } else { Rights::User };
            let (key, secret) = issue(store, &user, rights, name.clone(), expires, now).await?;
            writeln!(out, "{}", secret.expose_secret())?;
            writeln!(
                out,
                "This is the only time the key is shown. {}",
                describe(&key, now)
            )?;
        }
        KeysCommand::List { user, .. } => {
            let user = match user {
                Some(user) => Some(user_id(user, accounts).await?),
                None => None,
            };
            for key in store.list(user.as_deref()).await? {
                writeln!(out, "{}", describe(&key, now))?;
            }
        }
        KeysCommand::Revoke { key_id, .. } => {
            let entry = NewAuditEntry::new(AuditAction::KeyRevoked, now).on(key_id);
            if !store
                .revoke(key_id, Operator::default().sign(entry))
                .await?
            {
                bail!("there is no key {key_id}; `deerflow keys list` shows all");
            }
            writeln!(out, "revoked key {key_id}")?;
        }
    }
    Ok(())
}

fn describe(key: &ApiKey, now: DateTime<Utc>) -> String {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", iso(at)),
        (None, Some(end)) if end <= now => format!("expired {}", iso(end)),
        (None, Some(end)) => format!("expires {}", iso(end)),
        (None, None) => "does not expire".to_owned(),
    };
    let name = key
        .name
        .as_deref()
        .map(|name| format!(" {name:?}"))
        .unwrap_or_default();
    let role = if key.is_admin { ", admin" } else { "" };
    format!(
        "id {}{name} of user {:?}{role}, created {}, {state}",
        key.key_id,
        key.user_id,
        iso(key.created_at)
    )
}

/// Returns the id of the user of a new key. A key with rights of an administrator needs an
/// administrator, unless its user has no account.
async fn owner_of(
    user: &str,
    is_admin: bool,
    accounts: &dyn AccountStore,
) -> anyhow::Result<String> {
    let id = user_id(user, accounts).await?;
    if let Some(account) = accounts.find(&id).await? {
        if is_admin && account.role != Role::Admin {
            bail!("{} is no administrator", account.email);
        }
        if !account.is_enabled() {
            bail!("the account {} is disabled", account.email);
        }
    }
    Ok(id)
}

/// Returns the id of a user: of the account with this e-mail, or the text itself.
async fn user_id(user: &str, accounts: &dyn AccountStore) -> anyhow::Result<String> {
    if user.contains('@') {
        Ok(find_account(accounts, user).await?.id)
    } else {
        parse_user(user)
    }
}

/// Validates a user id. Its characters are restricted because user ids are used in file paths.
fn parse_user(text: &str) -> anyhow::Result<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(plain) {
        bail!("a user id has 1 to 64 letters, digits, dashes and underscores");
    }
    Ok(text.to_owned())
}

/// Parses an expiry time: `90d`, `12h`, `2027-01-31` (midnight UTC), or a date-time with an offset.
fn parse_expiry(text: &str, now: DateTime<Utc>) -> anyhow::Result<DateTime<Utc>> {
    let after = |number: &str, unit: fn(i64) -> Option<TimeDelta>| {
        now.checked_add_signed(unit(number.parse().ok()?)?)
    };
    let end = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(days), _) => after(days, TimeDelta::try_days),
        (_, Some(hours)) => after(hours, TimeDelta::try_hours),
        _ => None,
    };
    let date = || {
        text.parse::<NaiveDate>()
            .ok()
            .map(|date| date.and_time(chrono::NaiveTime::MIN).and_utc())
    };
    let moment = || {
        DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|moment| moment.to_utc())
    };
    let end = end.or_else(date).or_else(moment);
    end.filter(|end| *end > now).with_context(|| {
        format!(
            "{text:?} is not a time in the future: use 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z"
        )
    })
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
