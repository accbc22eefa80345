//! Response bodies of scripted servers, sent step by step.

use std::{collections::HashMap, io, time::Duration};

use axum::body::Bytes;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::watch;

/// One step of a response body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyStep {
    /// Sends these bytes.
    Send(Bytes),
    /// Pauses.
    Wait(Duration),
    /// Pauses until the test releases answers with this word beyond `sent` pieces.
    Hold { word: String, sent: usize },
    /// Drops the connection.
    Cut,
    /// Sends nothing more.
    Hang,
}

/// Held answers that may continue.
#[derive(Debug, Default)]
pub(crate) struct Released {
    all: bool,
    /// Maximum number of pieces by the word of the directive.
    words: HashMap<String, usize>,
}

impl Released {
    /// Releases answers with this word up to a number of pieces; without a word, all of them.
    pub(crate) fn release(&mut self, word: Option<String>, to: Option<usize>) {
        match word {
            None => self.all = true,
            Some(word) => {
                self.words.insert(word, to.unwrap_or(usize::MAX));
            }
        }
    }

    /// Reports whether an answer with this word may send the piece after `sent` pieces.
    fn allows_more(&self, word: &str, sent: usize) -> bool {
        self.all || self.words.get(word).is_some_and(|pieces| sent < *pieces)
    }
}

/// Streams the steps as a response body.
pub(crate) fn play(
    body_steps: Vec<BodyStep>,
    released: watch::Receiver<Released>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::iter(body_steps).filter_map(move |beat| {
        let mut released = released.clone();
        async move {
            match beat {
                BodyStep::Send(bytes) => Some(Ok(bytes)),
                BodyStep::Wait(pause) => {
                    tokio::time::sleep(pause).await;
                    None
                }
                BodyStep::Hold { word, sent } => {
                    // The sender is dropped only with the server, which also ends the response.
                    let _released = released
                        .wait_for(|released| released.allows_more(&word, sent))
                        .await;
                    None
                }
                BodyStep::Cut => {
                    // The connection flushes its buffer only when the body has nothing ready.
                    tokio::task::yield_now().await;
                    Some(Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        "scripted cut",
                    )))
                }
                BodyStep::Hang => std::future::pending().await,
            }
        }
    })
}
