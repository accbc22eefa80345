//! `deerflow chat`, from opening the installation to leaving it in order.

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

use crate::cli::ChatArgs;
use crate::commands::chat::{Chat, Ended};
use crate::config::{ConfigHandle, Settings};
use crate::lifecycle::wind_down;
use crate::telemetry;
use crate::wiring::{App, Role};

/// Talks until the person, or the message, has no more to say.
pub async fn run(mut args: ChatArgs, environment: Environment) -> anyhow::Result<ExitCode> {
    let mut loaded = load(args.file.config.as_deref(), &environment)?;
    let settings = Settings::from_environment(&environment)?;
    let services = Tasks::new();
    // The terminal is for the conversation; RUST_LOG shows more.
    loaded.config.log_level = LogLevel::Error;
    let telemetry = telemetry::start(&loaded.config, &environment, &services)?;
    if args.message.is_empty() && !stdin().is_terminal() {
        let mut piped = String::new();
        stdin()
            .read_to_string(&mut piped)
            .context("reading standard input")?;
        anyhow::ensure!(
            !piped.trim().is_empty(),
            "there is nothing to say: standard input is empty"
        );
        args.message.push(piped);
    }
    let config = ConfigHandle::new(loaded, environment);
    let mut stops = stops(&services)?;
    let app = tokio::select! {
        app = App::build(&settings, &config, Role::Guest, Tasks::new(), CancellationToken::new()) => app?,
        Some(()) = stops.recv() => return Ok(Ended::AtOnce.into()),
    };
    let done = talk(&app, &args, &mut stops).await;
    let left = match &done {
        Ok(Ended::AtOnce) => Ended::AtOnce,
        _ => tokio::select! {
            () = wind_down(&app, Instant::now()) => Ended::Well,
            Some(()) = stops.recv() => Ended::AtOnce,
        },
    };
    if left == Ended::AtOnce {
        return Ok(left.into());
    }
    services.token().cancel();
    telemetry.stop().await;
    done.map(Into::into)
}

/// Talks on the thread that is asked for, and has it learned from next.
async fn talk(app: &App, args: &ChatArgs, stops: &mut mpsc::Receiver<()>) -> anyhow::Result<Ended> {
    let thread = match (&args.thread, args.r#continue) {
        (Some(thread), _) => thread.clone(),
        (None, true) => newest(&*app.gateway.threads).await?,
        (None, false) => app.gateway.ids.thread_id(),
    };
    let mut chat = Chat {
        client: app.client.clone(),
        thread,
        ids: &*app.gateway.ids,
        lines: lines(args.message.is_empty()),
        stops,
        watched: stdout().is_terminal(),
    };
    let done = chat.run(args, &mut stdout()).await;
    // A late stop is not meant for the end.
    while chat.stops.try_recv().is_ok() {}
    if let Err(error) = app.gateway.memories.hurry(&chat.thread).await {
        tracing::warn!(%error, "what was said is learned later");
    }
    done
}

/// The thread that was last changed.
async fn newest(threads: &dyn ThreadStore) -> anyhow::Result<ThreadId> {
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
        .context("there is no conversation to go on with yet")
}

/// The lines of standard input, if they are wanted.
fn lines(wanted: bool) -> mpsc::Receiver<String> {
    let (said, lines) = mpsc::channel(1);
    if wanted {
        // A thread of its own: a read that waits for a person must hold up nobody, not even the end of the process.
        std::thread::spawn(move || {
            if let Err(error) = tell_lines(stdin().lock(), &said) {
                tracing::error!(%error, "standard input cannot be read any further");
            }
        });
    }
    lines
}

/// Tells each line for as long as somebody listens; what is no text in it is shown as such.
fn tell_lines(input: impl BufRead, said: &mpsc::Sender<String>) -> std::io::Result<()> {
    for line in input.split(b'\n') {
        let line = String::from_utf8_lossy(&line?)
            .trim_end_matches('\r')
            .to_owned();
        if said.blocking_send(line).is_err() {
            break;
        }
    }
    Ok(())
}

/// Each interrupt from the keyboard.
fn stops(services: &Tasks) -> anyhow::Result<mpsc::Receiver<()>> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let (stop, stops) = mpsc::channel(1);
    services.spawn(TaskKind::Service, "interrupts", async move {
        while interrupts.recv().await.is_some() && stop.send(()).await.is_ok() {}
    });
    Ok(stops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_text_does_not_end_the_conversation() {
        let (said, mut lines) = mpsc::channel(4);
        tell_lines(&b"caf\xe9\r\nstill here\nand now"[..], &said).unwrap();
        drop(said);
        let told: Vec<String> = std::iter::from_fn(|| lines.blocking_recv()).collect();
        assert_eq!(told, ["caf\u{FFFD}", "still here", "and now"]);
    }
}
