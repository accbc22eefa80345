//! `deerflow keys`: make, list and take back the keys with which programs act for users.

use std::io::Write;

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use deerflow_domain::api_keys::{ApiKey, ApiKeyStore, Rights, issue};
use harness::clock::iso;
use secrecy::ExposeSecret;

use crate::cli::KeysCommand;

/// Runs the command on `store`, writing what a person wants to know to `out`.
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
                .map(|text| read_end(text, now))
                .transpose()?;
            let user = read_user(user)?;
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
            writeln!(out, "key {key_id} does not let anybody in any more")?;
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

/// User ids stand in paths of files, so their alphabet is narrow.
fn read_user(text: &str) -> anyhow::Result<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(plain) {
        bail!("a user id has 1 to 64 letters, digits, dashes and underscores");
    }
    Ok(text.to_owned())
}

/// `90d`, `12h`, `2027-01-31` (its first moment, in UTC), or a date-time with its offset.
fn read_end(text: &str, now: DateTime<Utc>) -> anyhow::Result<DateTime<Utc>> {
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
        format!("{text:?} is no time to come: use 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z")
    })
}

#[cfg(test)]
mod tests {
    use deerflow_domain::api_keys::{MemoryApiKeyStore, recognize};
    use std::sync::Arc;

    use super::*;
    use crate::cli::FileArgs;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    async fn say(store: &dyn ApiKeyStore, command: KeysCommand) -> anyhow::Result<String> {
        let mut out = Vec::new();
        run(&command, store, now(), &mut out).await?;
        Ok(String::from_utf8(out)?)
    }

    fn create(user: &str, expires: Option<&str>) -> KeysCommand {
        let (name, expires) = (Some("ci".to_owned()), expires.map(str::to_owned));
        KeysCommand::Create {
            user: user.to_owned(),
            name,
            expires,
            admin: false,
            file: FileArgs::default(),
        }
    }

    #[tokio::test]
    async fn a_key_is_an_admins_only_where_that_is_asked_for() {
        let store: Arc<dyn ApiKeyStore> = Arc::new(MemoryApiKeyStore::default());
        let mut command = create("ann", None);
        say(&*store, command.clone()).await.unwrap();
        if let KeysCommand::Create { admin, .. } = &mut command {
            *admin = true;
        }
        assert!(
            say(&*store, command)
                .await
                .unwrap()
                .contains("of user \"ann\", admin, created")
        );
        let listed = say(
            &*store,
            KeysCommand::List {
                user: None,
                file: FileArgs::default(),
            },
        )
        .await
        .unwrap();
        assert_eq!(
            (listed.lines().count(), listed.matches(", admin").count()),
            (2, 1),
            "{listed}"
        );
    }

    #[tokio::test]
    async fn a_key_is_shown_once_listed_and_taken_back() {
        let store: Arc<dyn ApiKeyStore> = Arc::new(MemoryApiKeyStore::default());
        let shown = say(&*store, create("ann", Some("90d"))).await.unwrap();
        let key = shown.lines().next().unwrap().to_owned();
        let found = recognize(&store, &key, now()).await.unwrap().unwrap();
        assert_eq!(
            (found.user_id.as_str(), found.expires_at),
            ("ann", Some(now() + TimeDelta::days(90)))
        );
        let list = |user: Option<&str>| KeysCommand::List {
            user: user.map(str::to_owned),
            file: FileArgs::default(),
        };
        let listed = say(&*store, list(None)).await.unwrap();
        assert!(
            listed.contains(&found.key_id) && listed.contains("\"ci\"") && !listed.contains(&key),
            "{listed}"
        );
        assert_eq!(say(&*store, list(Some("bob"))).await.unwrap(), "");
        let revoke = |key_id: &str| KeysCommand::Revoke {
            key_id: key_id.to_owned(),
            file: FileArgs::default(),
        };
        say(&*store, revoke(&found.key_id)).await.unwrap();
        assert!(say(&*store, revoke("nope")).await.is_err());
        assert_eq!(recognize(&store, &key, now()).await, Ok(None));
    }

    #[tokio::test]
    async fn users_and_times_are_checked() {
        let store = MemoryApiKeyStore::default();
        for user in ["", "a/b", "..", "a b", &"x".repeat(65)] {
            assert!(say(&store, create(user, None)).await.is_err(), "{user}");
        }
        for text in ["", "-1d", "0h", "1999-01-01", "soon", "99999999999999999d"] {
            assert!(read_end(text, now()).is_err(), "{text}");
        }
        assert_eq!(
            read_end("12h", now()).unwrap(),
            now() + TimeDelta::hours(12)
        );
        assert_eq!(
            iso(read_end("2030-01-31", now()).unwrap()),
            "2030-01-31T00:00:00.000000+00:00"
        );
    }
}
