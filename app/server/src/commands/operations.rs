//! `deerflow nodes`, `runs` and `webhooks`: inspects and controls an installation, whether or not
//! its server is running.

use std::io::Write;

use anyhow::bail;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::operations::{OperationsStore, RunSummary};
use deerflow_gateway::webhooks::{address, dead_letter_json};
use harness::clock::iso;
use harness::ids::RunId;
use harness::runtime::runs::store::{NodeRecord, NodeStore, RunCreateStore, WebhookOutbox};
use harness::runtime::runs::{CancelAction, RetryError, RetryPorts, RunStatus, retry_poisoned};
use serde_json::{Value, json};

use super::table::{Table, write_json};
use crate::cli::{NodesArgs, RunState, RunsArgs, RunsCommand, WebhooksCommand};

/// Maximum number of runs that are examined for stuck ones.
const MAX_SCANNED_RUNS: usize = 100_000;
const UNFINISHED: [RunStatus; 3] = [RunStatus::Pending, RunStatus::Starting, RunStatus::Running];

/// Stores of an installation.
#[derive(Debug)]
pub struct Operations<'a> {
    /// Nodes that share the database, and their leases.
    pub nodes: &'a dyn NodeStore,
    /// Run lists.
    pub runs: &'a dyn OperationsStore,
    /// Cancellation requests.
    pub cancels: &'a dyn RunCreateStore,
    /// Retries of poisoned runs.
    pub retries: RetryPorts<'a>,
    /// Webhook calls.
    pub outbox: &'a dyn WebhookOutbox,
    /// `true` if a process is using the database. The row of a process with exclusive access
    /// remains when it dies.
    pub in_use: bool,
    /// Current time.
    pub now: DateTime<Utc>,
}

impl Operations<'_> {
    /// Runs `deerflow nodes`.
    pub async fn nodes(&self, args: &NodesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
        let nodes: Vec<NodeRecord> = self
            .nodes
            .list()
            .await?
            .into_iter()
            .filter(|node| self.is_alive(node))
            .collect();
        if args.json {
            return Ok(write_json(
                &nodes.iter().map(|node| self.node_json(node)).collect(),
                out,
            )?);
        }
        let mut table = Table::new(&[
            "NODE",
            "ADDRESS",
            "STARTED",
            "RENEWED",
            "LEASE LEFT",
            "RUNS",
        ]);
        for node in &nodes {
            let remaining = node.left.map_or_else(
                || "exclusive".to_owned(),
                |remaining| format!("{:.1} s", remaining.as_secs_f64()),
            );
            let address = node.address.clone().unwrap_or_else(|| "-".to_owned());
            table.row([
                node.node.to_string(),
                address,
                iso(node.since),
                ago(self.now - node.renewed_at),
                remaining,
                node.runs.to_string(),
            ]);
        }
        Ok(table.write(out)?)
    }

    fn is_alive(&self, node: &NodeRecord) -> bool {
        node.left.is_some() || self.in_use
    }

    fn node_json(&self, node: &NodeRecord) -> Value {
        json!({
            "node_id": node.node.as_str(),
            "address": node.address,
            "started_at": iso(node.since),
            "renewed_at": iso(node.renewed_at),
            "lease_left_seconds": node.left.map(|left| left.as_secs_f64()),
            "runs": node.runs,
        })
    }

    /// Runs `deerflow runs`.
    pub async fn runs(&self, args: &RunsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
        match &args.command {
            Some(RunsCommand::Cancel {
                run_id, rollback, ..
            }) => {
                let action = if *rollback {
                    CancelAction::Rollback
                } else {
                    CancelAction::Interrupt
                };
                return self.cancel(run_id, action, out).await;
            }
            Some(RunsCommand::Retry { run_id, .. }) => return self.retry(run_id, out).await,
            None => {}
        }
        let statuses = match args.state {
            Some(state) if !args.stuck => state.statuses(),
            _ => UNFINISHED.to_vec(),
        };
        let limit = if args.stuck {
            MAX_SCANNED_RUNS
        } else {
            args.limit
        };
        let idle = TimeDelta::seconds(i64::from(args.idle));
        let found = if args.state == Some(RunState::Poisoned) {
            self.runs.poisoned(limit).await?
        } else {
            self.runs.runs(&statuses, limit).await?
        };
        let found = found.into_iter().map(|mut run| {
            run.owner_is_alive &= self.in_use;
            let why = run.stuck_reason(self.now, idle);
            (run, why)
        });
        let found: Vec<_> = found
            .filter(|(_, why)| !args.stuck || why.is_some())
            .take(args.limit)
            .collect();
        if args.json {
            return Ok(write_json(
                &found.iter().map(|(run, why)| run_json(run, *why)).collect(),
                out,
            )?);
        }
        let mut table = Table::new(&[
            "RUN",
            "THREAD",
            "USER",
            "STATE",
            "ATTEMPT",
            "LOSSES",
            "OWNER",
            "CREATED",
            "LAST WRITE",
            "REMARK",
        ]);
        for (run, why) in &found {
            let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            let remark = if run.cancel_requested {
                "cancel requested"
            } else {
                run.stop_reason.as_deref().unwrap_or_default()
            };
            table.row([
                run.run_id.clone(),
                run.thread_id.clone(),
                or_dash(&run.user_id),
                run.status.to_string(),
                run.attempt.to_string(),
                run.losses.to_string(),
                or_dash(&run.owner),
                iso(run.created_at),
                ago(self.now - run.updated_at),
                why.unwrap_or(remark).to_owned(),
            ]);
        }
        Ok(table.write(out)?)
    }

    async fn cancel(
        &self,
        run_id: &str,
        action: CancelAction,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let Ok(run) = RunId::parse(run_id) else {
            bail!("{run_id:?} is not a run id")
        };
        let Some(run) = self.cancels.request_cancel(&run, action, self.now).await? else {
            bail!("there is no run {run}; `deerflow runs` lists all unfinished runs");
        };
        if run.status.is_terminal() {
            bail!("run {} has already ended ({})", run.run_id, run.status);
        }
        let when = match (self.in_use, run.status.is_owned()) {
            (false, _) => "no server is running; the run ends when one starts",
            (true, true) => "its process stops it within 10 seconds",
            (true, false) => "it is queued and ends within 30 seconds",
        };
        Ok(writeln!(
            out,
            "requested cancellation of run {}: {when}",
            run.run_id
        )?)
    }

    async fn retry(&self, run_id: &str, out: &mut dyn Write) -> anyhow::Result<()> {
        let Ok(run) = RunId::parse(run_id) else {
            bail!("{run_id:?} is not a run id")
        };
        let queued = match retry_poisoned(&run, self.retries).await {
            Err(error @ (RetryError::NotFound(_) | RetryError::NotPoisoned { .. })) => {
                bail!("{error}; `deerflow runs --state poisoned` lists all poisoned runs")
            }
            result => result?,
        };
        let when = if self.in_use {
            "a server starts it when its thread is free"
        } else {
            "no server is running; it starts when one starts"
        };
        Ok(writeln!(
            out,
            "queued run {} as a retry of run {run}: {when}",
            queued.run_id
        )?)
    }

    /// Runs `deerflow webhooks`.
    pub async fn webhooks(
        &self,
        command: &WebhooksCommand,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        match command {
            WebhooksCommand::List {
                dead, limit, json, ..
            } => self.list_webhooks(*dead, *limit, *json, out).await,
            WebhooksCommand::Resend { run_ids, .. } => {
                for run_id in run_ids {
                    let known = match RunId::parse(run_id.as_str()) {
                        Ok(run) => self.outbox.resend(&run, self.now).await?,
                        Err(_) => false,
                    };
                    if !known {
                        bail!(
                            "there is no pending or dead call of run {run_id}; `deerflow webhooks list` lists all"
                        );
                    }
                    let when = if self.in_use {
                        "immediately"
                    } else {
                        "when a server starts"
                    };
                    writeln!(out, "the call of run {run_id} will be resent {when}")?;
                }
                Ok(())
            }
        }
    }

    async fn list_webhooks(
        &self,
        dead: bool,
        limit: usize,
        as_json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let calls = self.outbox.letters(dead, limit).await?;
        if as_json {
            return Ok(write_json(
                &calls.iter().map(dead_letter_json).collect(),
                out,
            )?);
        }
        let mut table = Table::new(&["RUN", "TO", "ENDED", "TRIES", "NEXT", "LAST ERROR"]);
        for call in &calls {
            let next = match (call.due_at, call.died_at) {
                (Some(due), _) => iso(due),
                (None, Some(died)) => format!("dead since {}", iso(died)),
                (None, None) => "dead".to_owned(),
            };
            let error = call.last_error.clone().unwrap_or_default();
            table.row([
                call.run_id.to_string(),
                address(&call.url),
                iso(call.ended_at),
                call.tries.to_string(),
                next,
                error,
            ]);
        }
        Ok(table.write(out)?)
    }
}

/// Formats an age in seconds.
fn ago(span: TimeDelta) -> String {
    format!("{:.1} s ago", span.as_seconds_f64().max(0.0))
}

fn run_json(run: &RunSummary, why: Option<&str>) -> Value {
    json!({
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "user_id": run.user_id,
        "assistant": run.assistant,
        "state": run.status.as_str(),
        "attempt": run.attempt,
        "losses": run.losses,
        "stop_reason": run.stop_reason,
        "owner": run.owner,
        "cancel_requested": run.cancel_requested,
        "created_at": iso(run.created_at),
        "updated_at": iso(run.updated_at),
        "stuck_because": why,
    })
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
