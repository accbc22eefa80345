//! Runs `deerflow chat`: opens the installation, holds the conversation and shuts down.

use std::io::{BufRead, IsTerminal, Read, stdin, stdout};
use std::process::ExitCode;

use anyhow::Context;
use deerflow_domain::threads::{ThreadSearch, ThreadStore};
use harness::config::LogLevel;
use harness::config_file::{Environment, load};
use harness::ids::ThreadId;
use harness::runtime::actor_context::{DEFAULT_USER_ID, Owner};
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Chat, ChatExit};
use crate::cli::ChatArgs;
use crate::config::{ConfigHandle, Settings};
use crate::lifecycle::shut_down_app;
use crate::telemetry;
use crate::wiring::{App, Role};

/// Runs the conversation until its end.
pub async fn run(mut args: ChatArgs, environment: Environment) -> anyhow::Result<ExitCode> {
    let mut loaded = load(args.file.config.as_deref(), &environment)?;
    let settings = Settings::from_environment(&environment)?;
    let services = Tasks::new();
    // The terminal is used for the conversation; RUST_LOG shows more.
    loaded.config.log_level = LogLevel::Error;
    let telemetry = telemetry::start(&loaded.config, &environment, &services)?;
    if args.message.is_empty() && !stdin().is_terminal() {
        let mut piped = String::new();
        stdin()
            .read_to_string(&mut piped)
            .context("reading standard input")?;
        anyhow::ensure!(
            !piped.trim().is_empty(),
            "no message: standard input is empty"
        );
        args.message.push(piped);
    }
    let config = ConfigHandle::new(loaded, environment);
    let mut interrupts = interrupts(&services)?;
    let app = tokio::select! {
        app = App::build(&settings, &config, Role::Guest, Tasks::new(), CancellationToken::new()) => app?,
        Some(()) = interrupts.recv() => return Ok(ChatExit::Aborted.into()),
    };
    let result = run_chat(&app, &args, &mut interrupts).await;
    let exit = match &result {
        Ok(ChatExit::Aborted) => ChatExit::Aborted,
        _ => tokio::select! {
            () = shut_down_app(&app, Instant::now()) => ChatExit::Success,
            Some(()) = interrupts.recv() => ChatExit::Aborted,
        },
    };
    if exit == ChatExit::Aborted {
        return Ok(exit.into());
    }
    services.token().cancel();
    telemetry.stop().await;
    result.map(Into::into)
}

/// Holds the conversation on the selected thread, then schedules its memory update.
async fn run_chat(
    app: &App,
    args: &ChatArgs,
    interrupts: &mut mpsc::Receiver<()>,
) -> anyhow::Result<ChatExit> {
    let thread = match (&args.thread, args.r#continue) {
        (Some(thread), _) => thread.clone(),
        (None, true) => latest_thread(&*app.gateway.thread_services.threads).await?,
        (None, false) => app.gateway.process.ids.thread_id(),
    };
    let mut chat = Chat {
        client: app.client.clone(),
        thread,
        ids: &*app.gateway.process.ids,
        lines: lines(args.message.is_empty()),
        interrupts,
        is_interactive: stdout().is_terminal(),
    };
    let result = chat.run(args, &mut stdout()).await;
    // Late interrupts must not affect the shutdown.
    while chat.interrupts.try_recv().is_ok() {}
    if let Err(error) = app
        .gateway
        .agent_services
        .user_memories
        .hurry(&chat.thread)
        .await
    {
        tracing::warn!(%error, "memory update is delayed");
    }
    result
}

/// Returns the most recently changed thread.
async fn latest_thread(threads: &dyn ThreadStore) -> anyhow::Result<ThreadId> {
    let search = ThreadSearch {
        limit: 1,
        ..ThreadSearch::default()
    };
    let found = threads
        .search(&search, &Owner::User(DEFAULT_USER_ID.to_owned()))
        .await?;
    found
        .into_iter()
        .next()
        .map(|thread| thread.thread_id)
        .context("there is no conversation to continue yet")
}

/// Returns the lines of standard input; none unless `enabled`.
pub(crate) fn lines(enabled: bool) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    if enabled {
        // A dedicated thread, because a blocking read must delay neither other tasks nor the exit
        // of the process.
        std::thread::spawn(move || {
            if let Err(error) = forward_lines(stdin().lock(), &sender) {
                tracing::error!(%error, "cannot read standard input");
            }
        });
    }
    lines
}

/// Sends each line until the receiver is dropped; invalid UTF-8 is replaced.
fn forward_lines(input: impl BufRead, sender: &mpsc::Sender<String>) -> std::io::Result<()> {
    for line in input.split(b'\n') {
        let line = String::from_utf8_lossy(&line?)
            .trim_end_matches('\r')
            .to_owned();
        if sender.blocking_send(line).is_err() {
            break;
        }
    }
    Ok(())
}

/// Returns a channel with each interrupt (Ctrl-C).
pub(crate) fn interrupts(services: &Tasks) -> anyhow::Result<mpsc::Receiver<()>> {
    let mut signals = signal(SignalKind::interrupt())?;
    let (stop, interrupts) = mpsc::channel(1);
    services.spawn(TaskKind::Service, "interrupts", async move {
        while signals.recv().await.is_some() && stop.send(()).await.is_ok() {}
    });
    Ok(interrupts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_line_does_not_end_conversation() {
        let (sender, mut lines) = mpsc::channel(4);
        forward_lines(&b"caf\xe9\r\nstill here\nand now"[..], &sender).unwrap();
        drop(sender);
        let received: Vec<String> = std::iter::from_fn(|| lines.blocking_recv()).collect();
        assert_eq!(received, ["caf\u{FFFD}", "still here", "and now"]);
    }
}
