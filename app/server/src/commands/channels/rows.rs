//! `deerflow channels inbox` and `letters`.

use std::io::Write;

use deerflow_channels::platform::{Content, OutgoingMessage};
use deerflow_domain::channels::{
    InboxFilter, InboxMessage, InboxState, Outgoing, OutgoingFilter, OutgoingState,
};
use harness::clock::iso;
use serde_json::{Value, json};

use super::ChannelOperations;
use crate::cli::RowArgs;
use crate::commands::table::{Table, write_json};

/// Maximum length of a text in a table, in characters.
const MAX_SHOWN: usize = 200;

impl ChannelOperations<'_> {
    /// Runs `deerflow channels inbox`.
    pub(super) async fn inbox(
        &self,
        state: Option<InboxState>,
        args: &RowArgs,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let filter = InboxFilter {
            provider: args.provider.clone(),
            state,
            limit: args.limit,
        };
        let rows = self.stores.inbox.list(&filter).await?;
        if args.json {
            let rows = rows.iter().map(|row| inbox_json(row, args.text)).collect();
            return Ok(write_json(&rows, out)?);
        }
        let mut table = Table::new(&[
            "ID", "CHANNEL", "ACCOUNT", "CHAT", "SENDER", "STATE", "RECEIVED", "ENDED", "FAILURES",
            "NOTE",
        ]);
        for row in &rows {
            let account = &row.key.account;
            table.row([
                row.id.to_string(),
                account.provider.clone(),
                account.id.clone(),
                row.key.chat.clone(),
                sender(row).unwrap_or("-").to_owned(),
                row.state.as_str().to_owned(),
                iso(row.received_at),
                row.ended_at.map_or_else(|| "-".to_owned(), iso),
                row.failures.to_string(),
                row.note.clone().unwrap_or_default(),
            ]);
        }
        table.write(out)?;
        let texts = rows
            .iter()
            .map(|row| (row.id.to_string(), received_text(row)));
        write_texts(args.text, texts, out)
    }

    /// Runs `deerflow channels letters`.
    pub(super) async fn letters(
        &self,
        state: OutgoingState,
        args: &RowArgs,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let filter = OutgoingFilter {
            provider: args.provider.clone(),
            state: Some(state),
            limit: args.limit,
        };
        let rows = self.stores.outbox.list(&filter).await?;
        if args.json {
            let rows = rows.iter().map(|row| letter_json(row, args.text)).collect();
            return Ok(write_json(&rows, out)?);
        }
        let mut table = Table::new(&[
            "ID", "CHANNEL", "ACCOUNT", "CHAT", "PART", "STATE", "CREATED", "ENDED", "TRIES",
            "ERROR",
        ]);
        for row in &rows {
            let account = &row.message.account;
            table.row([
                row.message.id.to_string(),
                account.provider.clone(),
                account.id.clone(),
                row.message.chat.clone(),
                row.message.part.to_string(),
                row.state.as_str().to_owned(),
                iso(row.created_at),
                row.ended_at.map_or_else(|| "-".to_owned(), iso),
                row.attempts.to_string(),
                row.error.clone().unwrap_or_default(),
            ]);
        }
        table.write(out)?;
        let texts = rows
            .iter()
            .map(|row| (row.message.id.to_string(), sent_text(row)));
        write_texts(args.text, texts, out)
    }
}

fn sender(row: &InboxMessage) -> Option<&str> {
    row.event.pointer("/sender/id")?.as_str()
}

fn received_text(row: &InboxMessage) -> Option<String> {
    let text = row.event.pointer("/body/message/text")?.as_str()?;
    Some(text.to_owned())
}

/// Returns the text of a message to be sent, or the name of its file.
fn sent_text(row: &Outgoing) -> Option<String> {
    let message: OutgoingMessage = serde_json::from_value(row.message.body.clone()).ok()?;
    Some(match message.content {
        Content::Text(part) | Content::Buttons { text: part, .. } => part.plain,
        Content::File { path, .. } => path,
        Content::TextFile { text, .. } => text,
    })
}

/// Writes the texts below a table, one per line.
fn write_texts(
    is_requested: bool,
    texts: impl Iterator<Item = (String, Option<String>)>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if !is_requested {
        return Ok(());
    }
    let mut table = Table::new(&["ID", "TEXT"]);
    for (id, text) in texts {
        let text = text.unwrap_or_default();
        let mut shown: String = text.chars().take(MAX_SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        table.row([id, shown]);
    }
    writeln!(out)?;
    Ok(table.write(out)?)
}

fn inbox_json(row: &InboxMessage, with_text: bool) -> Value {
    let mut json = json!({
        "id": row.id.to_string(),
        "run_id": row.run_id().as_str(),
        "channel": row.key.account.provider,
        "account": row.key.account.id,
        "workspace": row.key.workspace,
        "chat": row.key.chat,
        "message": row.key.message,
        "conversation": row.conversation,
        "sender": sender(row),
        "state": row.state.as_str(),
        "note": row.note,
        "claims": row.claims,
        "failures": row.failures,
        "next_attempt_at": row.not_before.map(iso),
        "received_at": iso(row.received_at),
        "ended_at": row.ended_at.map(iso),
    });
    if with_text {
        json["text"] = received_text(row).into();
    }
    json
}

fn letter_json(row: &Outgoing, with_text: bool) -> Value {
    let mut json = json!({
        "id": row.message.id.to_string(),
        "channel": row.message.account.provider,
        "account": row.message.account.id,
        "chat": row.message.chat,
        "conversation": row.message.conversation,
        "part": row.message.part,
        "state": row.state.as_str(),
        "attempts": row.attempts,
        "error": row.error,
        "next_attempt_at": iso(row.not_before),
        "created_at": iso(row.created_at),
        "ended_at": row.ended_at.map(iso),
    });
    if with_text {
        json["text"] = sent_text(row).into();
    }
    json
}
