//! Listening: connections one after another, with resumed or new sessions.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::connection::{self, Ended, Parts};
use super::cursor::Cursor;
use super::places::Places;
use super::protocol::Next;
use super::rest::Rest;
use super::settings::{Options, gateway_address};
use super::worker::{Tools, Worker};
use crate::platform::{EventSink, PlatformError};
use crate::socket::Socket;

/// Minimum interval between the beginnings of two sessions.
const IDENTIFY_INTERVAL: Duration = Duration::from_secs(5);

/// Number of failed attempts to resume a session, after which a new one begins.
const MAX_RESUMES: u32 = 3;

/// State of the listener that survives its connections.
#[derive(Debug, Default)]
pub(super) struct Listener {
    places: Mutex<Places>,
    identified_at: Mutex<Option<Instant>>,
    failed_resumes: AtomicU32,
}

impl Listener {
    /// Delivers events until `stop` or an error.
    pub(super) async fn run(
        &self,
        rest: &Rest,
        options: &Options,
        sink: &dyn EventSink,
        cursor: Option<String>,
        stop: &CancellationToken,
    ) -> Result<(), PlatformError> {
        let tools = Tools {
            rest,
            sink,
            places: &self.places,
            options,
            stop,
        };
        let mut worker = Worker::new(tools, Cursor::parse(cursor.as_deref()));
        if self.failed_resumes.load(Ordering::Relaxed) >= MAX_RESUMES {
            tracing::info!("the discord session cannot be resumed, beginning a new one");
            worker.cursor.session = None;
        }
        loop {
            let opening = self.open(rest, options, &worker.cursor);
            let socket = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                socket = opening => socket?,
            };
            let session = worker.cursor.session.clone();
            let is_new = session.is_none();
            let parts = Parts {
                token: rest.token(),
                sink,
                stop,
                session,
            };
            let (ended, returned) = connection::run(socket, parts, worker).await;
            match ended {
                Ended::After(_, true) => self.failed_resumes.store(0, Ordering::Relaxed),
                Ended::After(_, false) if !is_new => {
                    self.failed_resumes.fetch_add(1, Ordering::Relaxed);
                }
                _ => {}
            }
            let next = match ended {
                Ended::Stopped => return Ok(()),
                Ended::After(Next::Fail(error), _) => return Err(error),
                Ended::After(next, was_ready) => {
                    // Without progress the caller's pause between attempts applies.
                    if !was_ready && (is_new || next == Next::Resume) {
                        return Err(PlatformError::Unavailable(
                            "Discord ended the connection before the session began".to_owned(),
                        ));
                    }
                    next
                }
            };
            worker = returned.ok_or_else(|| {
                PlatformError::Unavailable("storing events took too long".to_owned())
            })?;
            if next == Next::Identify {
                tracing::info!("the discord session is invalid, beginning a new one");
                worker.cursor.session = None;
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(pause(options.pauses.identify)) => {}
                }
            }
        }
    }

    /// Opens a socket for the session of the cursor, or for a new one.
    async fn open(
        &self,
        rest: &Rest,
        options: &Options,
        cursor: &Cursor,
    ) -> Result<Socket, PlatformError> {
        let configured = options
            .gateway_url
            .as_ref()
            .and_then(|address| gateway_address(address.as_str()));
        if let Some(session) = &cursor.session {
            let address = configured
                .clone()
                .or_else(|| gateway_address(&session.resume_gateway_url));
            if let Some(address) = address {
                match connect(rest, &address).await {
                    Ok(socket) => return Ok(socket),
                    Err(error) => {
                        tracing::debug!(%error, "the gateway for resuming cannot be reached");
                    }
                }
            }
            let start = rest.gateway().await?;
            return connect(rest, &self.address(configured, &start.url)?).await;
        }
        let start = rest.gateway().await?;
        if start.remaining == Some(0) {
            return Err(PlatformError::RateLimited {
                retry_after: Duration::from_millis(start.reset_after),
                account: true,
            });
        }
        let address = self.address(configured, &start.url)?;
        let earliest = self.identified_at.lock().map(|at| at + IDENTIFY_INTERVAL);
        if let Some(earliest) = earliest {
            tokio::time::sleep_until(earliest.min(Instant::now() + options.pauses.identify.1))
                .await;
        }
        *self.identified_at.lock() = Some(Instant::now());
        connect(rest, &address).await
    }

    fn address(&self, configured: Option<Url>, named: &str) -> Result<Url, PlatformError> {
        configured
            .or_else(|| gateway_address(named))
            .ok_or_else(|| {
                PlatformError::Unavailable("Discord named an invalid gateway address".to_owned())
            })
    }
}

async fn connect(rest: &Rest, address: &Url) -> Result<Socket, PlatformError> {
    Ok(Socket::open(rest.http(), address, HeaderMap::new()).await?)
}

/// Returns a random pause between two bounds.
fn pause((min, max): (Duration, Duration)) -> Duration {
    let part: f64 = rand::random();
    min + max.saturating_sub(min).mul_f64(part)
}
