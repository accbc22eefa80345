//! `deerflow users usage`: amounts of users and their quotas.

use std::io::Write;

use deerflow_domain::accounts::Email;
use harness::quota::Quota;
use harness::sandbox::{measure_user_files, run_blocking};
use serde_json::{Map, Value, json};

use super::Users;
use crate::commands::table::{Table, write_json};

/// Columns in the order of [`Quota::ALL`].
const HEADER: [&str; 8] = [
    "USER",
    "ACTIVE RUNS",
    "QUEUED RUNS",
    "THREADS",
    "ASSISTANTS",
    "ITEMS",
    "STORED",
    "FILES",
];
const MIB: f64 = 1_048_576.0;

impl Users<'_> {
    /// Runs `deerflow users usage`.
    pub(super) async fn usage(
        &self,
        user: Option<&str>,
        limit: u64,
        as_json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let users = match user {
            Some(user) => vec![self.user_id(user).await?],
            None => self.usage.users(limit).await?,
        };
        let (mut table, mut list) = (Table::new(&HEADER), Vec::new());
        for user in users {
            let amounts = self.amounts(&user).await?;
            let [active, queued, threads, assistants, items, stored, files] =
                amounts.map(|(quota, used)| self.cell(quota, used));
            table.row([
                user.clone(),
                active,
                queued,
                threads,
                assistants,
                items,
                stored,
                files,
            ]);
            let usage = amounts.iter().map(|(quota, used)| {
                let usage = json!({ "used": used, "limit": self.quotas.limit(*quota) });
                (quota.as_str().to_owned(), usage)
            });
            let usage: Map<String, Value> = usage.collect();
            list.push(json!({ "user_id": user, "usage": usage }));
        }
        if as_json {
            return Ok(write_json(&list.into(), out)?);
        }
        Ok(table.write(out)?)
    }

    /// Returns the id of the account of an e-mail. Other texts are ids, also of users without an
    /// account.
    async fn user_id(&self, user: &str) -> anyhow::Result<String> {
        let account = match Email::parse(user) {
            Ok(email) => self.stores.accounts.find_by_email(&email).await?,
            Err(_) => None,
        };
        Ok(account.map_or_else(|| user.to_owned(), |account| account.id))
    }

    async fn amounts(&self, user: &str) -> anyhow::Result<[(Quota, u64); 7]> {
        let mut amounts = Quota::ALL.map(|quota| (quota, 0));
        for (quota, used) in &mut amounts {
            *used = match quota {
                Quota::FileBytes => {
                    let (home, name) = (self.home.to_owned(), user.to_owned());
                    run_blocking(move || measure_user_files(&home, &name)).await?
                }
                _ => self.usage.amount(user, *quota).await?,
            };
        }
        Ok(amounts)
    }

    fn cell(&self, quota: Quota, used: u64) -> String {
        let text = |amount: u64| match quota.is_bytes() {
            true => format!("{:.1} MiB", amount as f64 / MIB),
            false => amount.to_string(),
        };
        match self.quotas.limit(quota) {
            Some(limit) => format!("{} of {}", text(used), text(limit)),
            None => text(used),
        }
    }
}
