//! `deerflow audit`: entries of the audit log.

use std::io::Write;

use anyhow::Context as _;
use deerflow_domain::accounts::{AuditAction, AuditEntry, AuditQuery, Email};
use harness::clock::iso;

use super::Users;
use crate::cli::AuditArgs;
use crate::commands::table::{Table, write_json};

impl Users<'_> {
    /// Runs `deerflow audit`.
    pub async fn audit(&self, args: &AuditArgs, out: &mut dyn Write) -> anyhow::Result<()> {
        let query = AuditQuery {
            user: self.audited_user(args.user.as_deref()).await?,
            action: args.action.as_deref().map(parse_action).transpose()?,
            before: args.before,
            limit: args.limit,
        };
        let entries = self.stores.audit.list(&query).await?;
        if args.json {
            let shown = entries.iter().map(AuditEntry::to_json).collect();
            return Ok(write_json(&shown, out)?);
        }
        let mut table = Table::new(&[
            "SEQ", "TIME", "ACTION", "OUTCOME", "ACTOR", "OBJECT", "ADDRESS", "AGENT",
        ]);
        for AuditEntry { seq, entry } in entries {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            table.row([
                seq.to_string(),
                iso(entry.at),
                entry.action.to_string(),
                entry.outcome.to_string(),
                or_dash(entry.actor),
                or_dash(entry.object),
                or_dash(entry.address),
                or_dash(entry.agent),
            ]);
        }
        Ok(table.write(out)?)
    }

    /// Returns the id of the account of an e-mail. Other texts are ids, also those of deleted
    /// accounts.
    async fn audited_user(&self, user: Option<&str>) -> anyhow::Result<Option<String>> {
        let Some(user) = user else { return Ok(None) };
        let account = match Email::parse(user) {
            Ok(email) => self.stores.accounts.find_by_email(&email).await?,
            Err(_) => None,
        };
        Ok(Some(
            account.map_or_else(|| user.to_owned(), |account| account.id),
        ))
    }
}

fn parse_action(name: &str) -> anyhow::Result<AuditAction> {
    AuditAction::named(name).with_context(|| {
        let known = AuditAction::ALL.iter().map(|action| action.as_str());
        let known: Vec<&str> = known.collect();
        format!(
            "there is no action {name:?}; actions are {}",
            known.join(", ")
        )
    })
}
