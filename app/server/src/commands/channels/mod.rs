//! `deerflow channels`: inspects and controls the chat channels of an installation, whether or not
//! its server is running.

mod rows;
mod status;

use std::io::Write;

use anyhow::{Context as _, bail};
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_channels::ChannelInspector;
use deerflow_domain::channels::ChannelStores;
use serde_json::json;

use super::table::write_json;
use crate::cli::ChannelsCommand;

/// Time from the revocation of a lease until another node can acquire the account: the holder has
/// then noticed the revocation and closed its connection.
const REVOCATION_DELAY: TimeDelta = TimeDelta::seconds(6);

/// Chat channels of an installation.
#[derive(Debug)]
pub struct ChannelOperations<'a> {
    /// Stores of channels.
    pub stores: &'a ChannelStores,
    /// Configured channels.
    pub inspector: &'a ChannelInspector,
    /// `true` if the installation has a database; without one the stores are empty.
    pub has_database: bool,
    /// `true` if a process is using the database.
    pub in_use: bool,
    /// Current time by the clock of the stores.
    pub now: DateTime<Utc>,
}

impl ChannelOperations<'_> {
    /// Runs `deerflow channels`.
    pub async fn run(&self, command: &ChannelsCommand, out: &mut dyn Write) -> anyhow::Result<()> {
        match command {
            ChannelsCommand::Status { json, .. } => return self.status(*json, out).await,
            ChannelsCommand::Test { name, json, .. } => return self.test(name, *json, out).await,
            _ if !self.has_database => {
                bail!(
                    "this installation has no database yet; the first start of a server creates it"
                )
            }
            ChannelsCommand::Inbox { state, list } => {
                self.inbox(state.map(Into::into), list, out).await
            }
            ChannelsCommand::Letters { state, list } => {
                self.letters((*state).into(), list, out).await
            }
            ChannelsCommand::Resend { ids, .. } => self.resend(ids, out).await,
            ChannelsCommand::Restart { name, .. } => self.restart(name, out).await,
        }
    }

    async fn test(&self, name: &str, as_json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
        self.require_supported(name)?;
        if self
            .inspector
            .undecipherable()
            .iter()
            .any(|one| one == name)
        {
            bail!(
                "the stored credentials of {name} cannot be decrypted: set DEER_FLOW_CHANNELS_KEY as the server has it, or enter them again"
            );
        }
        let identity = self
            .inspector
            .identify(name)
            .await
            .with_context(|| format!("the bot of {name} cannot be identified"))?;
        if as_json {
            let found = json!({
                "channel": name,
                "account": identity.account,
                "name": identity.name,
                "warnings": identity.warnings,
            });
            return Ok(write_json(&found, out)?);
        }
        writeln!(
            out,
            "{name}: {} (account {})",
            identity.name, identity.account
        )?;
        for warning in &identity.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        Ok(())
    }

    async fn resend(&self, ids: &[String], out: &mut dyn Write) -> anyhow::Result<()> {
        for id in ids {
            let known = match id.parse() {
                Ok(id) => self.stores.outbox.resend(id, self.now).await?,
                Err(_) => false,
            };
            if !known {
                bail!("there is no dead letter {id}; `deerflow channels letters` lists all");
            }
            let when = if self.in_use {
                "within 10 seconds"
            } else {
                "when a server starts"
            };
            writeln!(out, "the letter {id} will be sent again {when}")?;
        }
        Ok(())
    }

    async fn restart(&self, name: &str, out: &mut dyn Write) -> anyhow::Result<()> {
        self.require_supported(name)?;
        let (leases, mut restarted) = (&self.stores.leases, 0);
        for lease in leases.all().await? {
            let account = &lease.claim.account;
            if account.provider == name {
                let free_at = self.now + REVOCATION_DELAY;
                restarted += usize::from(leases.revoke(account, free_at).await?);
            }
        }
        if restarted == 0 {
            bail!(
                "{name} has never been connected; `deerflow channels test {name}` checks its credentials"
            );
        }
        let when = if self.in_use {
            "within 15 seconds"
        } else {
            "when a server starts"
        };
        Ok(writeln!(out, "{name} will connect again {when}")?)
    }

    fn require_supported(&self, name: &str) -> anyhow::Result<()> {
        let channels = self.inspector.channels();
        let known: Vec<&str> = channels.iter().map(|channel| channel.provider).collect();
        if !known.contains(&name) {
            bail!(
                "unknown channel {name:?}; supported are {}",
                known.join(", ")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
