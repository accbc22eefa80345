//! `deerflow channels status`.

use std::collections::BTreeMap;
use std::io::Write;

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_channels::InspectedChannel;
use deerflow_domain::channels::{Account, LeaseRecord, OutgoingFilter, OutgoingState};
use harness::clock::iso;
use serde_json::{Value, json};

use super::ChannelOperations;
use crate::commands::table::{Table, write_json};

/// Maximum number of dead letters that are counted per channel.
const MAX_COUNTED: u64 = 1_000;

/// One served account of a channel, or a channel that was never served.
#[derive(Debug)]
struct Row<'a> {
    channel: &'a InspectedChannel,
    lease: Option<LeaseRecord>,
    waiting: u64,
    oldest: Option<DateTime<Utc>>,
    pending: u64,
    dead: u64,
}

impl ChannelOperations<'_> {
    /// Runs `deerflow channels status`.
    pub(super) async fn status(&self, as_json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
        let channels = self.inspector.channels();
        let mut leases: BTreeMap<String, Vec<LeaseRecord>> = BTreeMap::new();
        for lease in self.stores.leases.all().await? {
            let provider = lease.claim.account.provider.clone();
            leases.entry(provider).or_default().push(lease);
        }
        let mut rows = Vec::new();
        for channel in &channels {
            let of_channel = leases.remove(channel.provider).unwrap_or_default();
            if of_channel.is_empty() {
                rows.push(Row {
                    channel,
                    lease: None,
                    waiting: 0,
                    oldest: None,
                    pending: 0,
                    dead: 0,
                });
                continue;
            }
            let dead = self.dead_letters(channel.provider).await?;
            for lease in of_channel {
                rows.push(self.row(channel, lease, &dead).await?);
            }
        }
        if as_json {
            let rows = rows.iter().map(|row| self.row_json(row)).collect();
            return Ok(write_json(&rows, out)?);
        }
        self.table(&rows).write(out)?;
        for name in self.inspector.unsupported() {
            writeln!(out, "{name} is enabled, but not supported; it stays off")?;
        }
        Ok(())
    }

    async fn row<'a>(
        &self,
        channel: &'a InspectedChannel,
        lease: LeaseRecord,
        dead: &BTreeMap<Account, u64>,
    ) -> anyhow::Result<Row<'a>> {
        let account = &lease.claim.account;
        let (waiting, oldest) = self.stores.inbox.backlog(account).await?;
        Ok(Row {
            channel,
            waiting,
            oldest,
            pending: self.stores.outbox.depth(account).await?,
            dead: dead.get(account).copied().unwrap_or_default(),
            lease: Some(lease),
        })
    }

    async fn dead_letters(&self, provider: &str) -> anyhow::Result<BTreeMap<Account, u64>> {
        let filter = OutgoingFilter {
            provider: Some(provider.to_owned()),
            state: Some(OutgoingState::Dead),
            limit: MAX_COUNTED,
        };
        let mut counts = BTreeMap::new();
        for letter in self.stores.outbox.list(&filter).await? {
            *counts.entry(letter.message.account).or_default() += 1;
        }
        Ok(counts)
    }

    fn table(&self, rows: &[Row<'_>]) -> Table {
        let mut table = Table::new(&[
            "CHANNEL",
            "ENABLED",
            "CREDENTIALS",
            "ACCOUNT",
            "HOLDER",
            "EPOCH",
            "SINCE",
            "LEASE",
            "WAITING",
            "OLDEST",
            "PENDING",
            "DEAD",
        ]);
        for row in rows {
            let dash = || "-".to_owned();
            let of_lease = |text: &dyn Fn(&LeaseRecord) -> String| row.lease.as_ref().map(text);
            let credentials = match &row.channel.missing[..] {
                [] => "complete".to_owned(),
                missing => format!("without {}", missing.join(", ")),
            };
            let dead = match row.dead {
                MAX_COUNTED.. => format!("{MAX_COUNTED} or more"),
                dead => dead.to_string(),
            };
            let yes_or_no = if row.channel.enabled { "yes" } else { "no" };
            table.row([
                row.channel.provider.to_owned(),
                yes_or_no.to_owned(),
                credentials,
                of_lease(&|lease| lease.claim.account.id.clone()).unwrap_or_else(dash),
                self.holder(row).map_or_else(dash, str::to_owned),
                of_lease(&|lease| lease.claim.epoch.to_string()).unwrap_or_else(dash),
                of_lease(&|lease| iso(lease.since)).unwrap_or_else(dash),
                of_lease(&|lease| remaining(lease.expires_at - self.now)).unwrap_or_else(dash),
                row.waiting.to_string(),
                row.oldest.map_or_else(dash, |at| seconds(self.now - at)),
                row.pending.to_string(),
                dead,
            ]);
        }
        table
    }

    /// Returns the node that holds the lease now.
    fn holder<'r>(&self, row: &'r Row<'_>) -> Option<&'r str> {
        let lease = row.lease.as_ref()?;
        let is_held = lease.expires_at > self.now && !lease.claim.node.is_empty();
        is_held.then_some(lease.claim.node.as_str())
    }

    fn row_json(&self, row: &Row<'_>) -> Value {
        let lease = row.lease.as_ref();
        let age = |at: DateTime<Utc>| (self.now - at).as_seconds_f64().max(0.0);
        json!({
            "channel": row.channel.provider,
            "enabled": row.channel.enabled,
            "configured": row.channel.missing.is_empty(),
            "missing": row.channel.missing,
            "problem": row.channel.problem,
            "account": lease.map(|lease| &lease.claim.account.id),
            "holder": self.holder(row),
            "epoch": lease.map(|lease| lease.claim.epoch),
            "since": lease.map(|lease| iso(lease.since)),
            "lease_expires_at": lease.map(|lease| iso(lease.expires_at)),
            "inbox_waiting": row.waiting,
            "inbox_age_seconds": row.oldest.map(age),
            "outbox_pending": row.pending,
            "dead_letters": row.dead,
        })
    }
}

fn remaining(left: TimeDelta) -> String {
    if left > TimeDelta::zero() {
        format!("{} left", seconds(left))
    } else {
        format!("ended {} ago", seconds(-left))
    }
}

fn seconds(span: TimeDelta) -> String {
    format!("{:.1} s", span.as_seconds_f64().max(0.0))
}
