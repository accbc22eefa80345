//! `deerflow keys`: creates, lists and revokes API keys.

use std::io::Write;

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use deerflow_domain::api_keys::{ApiKey, ApiKeyStore, Rights, issue};
use harness::clock::iso;
use secrecy::ExposeSecret;

use crate::cli::KeysCommand;

/// Runs the command on `store` and writes its output to `out`.
pub async fn run(
    command: &KeysCommand,
    store: &dyn ApiKeyStore,
    now: DateTime<Utc>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
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
            let user = parse_user(user)?;
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
            for key in store.list(user.as_deref()).await? {
                writeln!(out, "{}", describe(&key, now))?;
            }
        }
        KeysCommand::Revoke { key_id, .. } => {
            if !store.revoke(key_id, now).await? {
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
