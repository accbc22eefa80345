//! `deerflow nodes`, `runs` and `webhooks`: what goes on in an installation, and a hand in it, with its server running or not.

use std::io::Write;

use anyhow::bail;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::operations::{OperationsStore, RunLine};
use deerflow_gateway::webhooks::{address, letter_json};
use harness::clock::iso;
use harness::ids::RunId;
use harness::runtime::runs::store::{NodeRecord, NodeStore, RunCreateStore, WebhookOutbox};
use harness::runtime::runs::{CancelAction, RunStatus};
use serde_json::{Value, json};

use super::table::{Table, write_json};
use crate::cli::{NodesArgs, RunsArgs, RunsCommand, WebhooksCommand};

/// The most runs that are looked through for those that are stuck.
const LOOKED_THROUGH: usize = 100_000;
const UNFINISHED: [RunStatus; 3] = [RunStatus::Pending, RunStatus::Starting, RunStatus::Running];

/// The stores of an installation.
#[derive(Debug)]
pub struct Operations<'a> {
    /// Who lives.
    pub nodes: &'a dyn NodeStore,
    /// Lists of runs.
    pub runs: &'a dyn OperationsStore,
    /// Cancels.
    pub cancels: &'a dyn RunCreateStore,
    /// Calls that tell of ends.
    pub outbox: &'a dyn WebhookOutbox,
    /// Whether a process uses the database now: one that had it for itself and died still has its row.
    pub in_use: bool,
    /// Now.
    pub now: DateTime<Utc>,
}

impl Operations<'_> {
    /// `deerflow nodes`.
    pub async fn nodes(&self, args: &NodesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
        let nodes: Vec<NodeRecord> = self
            .nodes
            .list()
            .await?
            .into_iter()
            .filter(|node| self.lives(node))
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
            let left = node.left.map_or_else(
                || "its own".to_owned(),
                |left| format!("{:.1} s", left.as_secs_f64()),
            );
            let address = node.address.clone().unwrap_or_else(|| "-".to_owned());
            table.row([
                node.node.to_string(),
                address,
                iso(node.since),
                ago(self.now - node.renewed_at),
                left,
                node.runs.to_string(),
            ]);
        }
        Ok(table.write(out)?)
    }

    fn lives(&self, node: &NodeRecord) -> bool {
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

    /// `deerflow runs`.
    pub async fn runs(&self, args: &RunsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
        if let Some(RunsCommand::Cancel {
            run_id, rollback, ..
        }) = &args.command
        {
            let action = if *rollback {
                CancelAction::Rollback
            } else {
                CancelAction::Interrupt
            };
            return self.cancel(run_id, action, out).await;
        }
        let statuses = match args.state {
            Some(state) if !args.stuck => state.statuses(),
            _ => UNFINISHED.to_vec(),
        };
        let most = if args.stuck {
            LOOKED_THROUGH
        } else {
            args.limit
        };
        let idle = TimeDelta::seconds(i64::from(args.idle));
        let found = self
            .runs
            .runs(&statuses, most)
            .await?
            .into_iter()
            .map(|mut run| {
                run.owner_lives &= self.in_use;
                let why = run.stuck_because(self.now, idle);
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
            "OWNER",
            "CREATED",
            "LAST WRITE",
            "REMARK",
        ]);
        for (run, why) in &found {
            let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
            let told = if run.told_to_stop { "told to stop" } else { "" };
            table.row([
                run.run_id.clone(),
                run.thread_id.clone(),
                or_dash(&run.user_id),
                run.status.to_string(),
                run.attempt.to_string(),
                or_dash(&run.owner),
                iso(run.created_at),
                ago(self.now - run.updated_at),
                why.unwrap_or(told).to_owned(),
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
            bail!("{run_id:?} is no id of a run")
        };
        let Some(run) = self.cancels.request_cancel(&run, action, self.now).await? else {
            bail!("there is no run {run}; `deerflow runs` shows all that are not over");
        };
        if run.status.is_terminal() {
            bail!("run {} is over already ({})", run.run_id, run.status);
        }
        let when = match (self.in_use, run.status.is_owned()) {
            (false, _) => "no server is running; it ends when one starts",
            (true, true) => "the process that has it looks at most 10 seconds later",
            (true, false) => "it waits, and ends at most 30 seconds later",
        };
        Ok(writeln!(out, "run {} is told to stop: {when}", run.run_id)?)
    }

    /// `deerflow webhooks`.
    pub async fn webhooks(
        &self,
        command: &WebhooksCommand,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        match command {
            WebhooksCommand::List {
                dead, limit, json, ..
            } => self.letters(*dead, *limit, *json, out).await,
            WebhooksCommand::Resend { run_ids, .. } => {
                for run_id in run_ids {
                    let known = match RunId::parse(run_id.as_str()) {
                        Ok(run) => self.outbox.resend(&run, self.now).await?,
                        Err(_) => false,
                    };
                    if !known {
                        bail!(
                            "no call of run {run_id} is left; `deerflow webhooks list` shows all"
                        );
                    }
                    let when = if self.in_use {
                        "at once"
                    } else {
                        "when a server starts"
                    };
                    writeln!(out, "the call of run {run_id} is sent again {when}")?;
                }
                Ok(())
            }
        }
    }

    async fn letters(
        &self,
        dead: bool,
        limit: usize,
        as_json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let letters = self.outbox.letters(dead, limit).await?;
        if as_json {
            return Ok(write_json(&letters.iter().map(letter_json).collect(), out)?);
        }
        let mut table = Table::new(&["RUN", "TO", "ENDED", "TRIES", "NEXT", "LAST ERROR"]);
        for letter in &letters {
            let next = match (letter.due_at, letter.died_at) {
                (Some(due), _) => iso(due),
                (None, Some(died)) => format!("dead since {}", iso(died)),
                (None, None) => "dead".to_owned(),
            };
            let error = letter.last_error.clone().unwrap_or_default();
            table.row([
                letter.run_id.to_string(),
                address(&letter.url),
                iso(letter.ended_at),
                letter.tries.to_string(),
                next,
                error,
            ]);
        }
        Ok(table.write(out)?)
    }
}

/// How long ago something was, in seconds.
fn ago(span: TimeDelta) -> String {
    format!("{:.1} s ago", span.as_seconds_f64().max(0.0))
}

fn run_json(run: &RunLine, why: Option<&str>) -> Value {
    json!({
        "run_id": run.run_id,
        "thread_id": run.thread_id,
        "user_id": run.user_id,
        "assistant": run.assistant,
        "state": run.status.as_str(),
        "attempt": run.attempt,
        "losses": run.losses,
        "owner": run.owner,
        "told_to_stop": run.told_to_stop,
        "created_at": iso(run.created_at),
        "updated_at": iso(run.updated_at),
        "stuck_because": why,
    })
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
