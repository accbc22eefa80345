//! Storing of events in their order.

use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answers::ApiError;
use super::bodies;
use super::catch_up;
use super::commands::{self, Answer};
use super::cursor::{Cursor, Session};
use super::decode::{self, View};
use super::ids::id;
use super::places::{Place, Places};
use super::protocol::Dispatch;
use super::rest::Rest;
use super::settings::Options;
use crate::platform::{Event, EventSink, PlatformError, SinkError};

/// Number of ignored events after which the cursor is stored without an event.
const MAX_UNSTORED: u64 = 200;
/// Time after which Discord takes no answer to a command.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of attempts to look up a channel.
const LOOKUPS: u32 = 5;

/// Decodes an interaction: a press or a command.
pub(super) fn interaction(data: &Value, view: View<'_>) -> Result<Option<Event>, &'static str> {
    match decode::press(data, view)? {
        Some(press) => Ok(Some(press)),
        None => commands::decode(data, view),
    }
}

/// Parts that the storage of events uses.
#[derive(Clone, Copy)]
pub(super) struct Tools<'a> {
    /// REST API.
    pub(super) rest: &'a Rest,
    /// Receiver of events.
    pub(super) sink: &'a dyn EventSink,
    /// Known channels.
    pub(super) places: &'a Mutex<Places>,
    /// Settings.
    pub(super) options: &'a Options,
    /// Signal to stop.
    pub(super) stop: &'a CancellationToken,
}

/// Storing of the events of one listener.
pub(super) struct Worker<'a> {
    tools: Tools<'a>,
    /// Cursor behind the last handled event.
    pub(super) cursor: Cursor,
    stored_seq: u64,
}

impl<'a> Worker<'a> {
    /// Creates a worker behind a cursor.
    pub(super) fn new(tools: Tools<'a>, cursor: Cursor) -> Self {
        let stored_seq = cursor.session.as_ref().map_or(0, |session| session.seq);
        Self {
            tools,
            cursor,
            stored_seq,
        }
    }

    /// Handles events in order. Messages and presses are stored in one transaction with the cursor
    /// behind them; while the store refuses them, this waits.
    pub(super) async fn handle(&mut self, batch: Vec<Dispatch>) -> Result<(), PlatformError> {
        let mut events = Vec::new();
        let mut answers = Vec::new();
        for dispatch in batch {
            self.tools
                .places
                .lock()
                .learn(&dispatch.kind, &dispatch.data);
            match dispatch.kind.as_str() {
                "READY" => self.begin(&dispatch).await?,
                "MESSAGE_CREATE" => {
                    // An event without guild is one of a direct channel.
                    let is_direct = dispatch.data["guild_id"].is_null();
                    let event = if is_direct {
                        self.decode_in(&Place::default(), &dispatch.data, decode::message)
                    } else {
                        self.decode(&dispatch.data, decode::message).await?
                    };
                    self.note(&dispatch.data);
                    events.extend(event);
                }
                "INTERACTION_CREATE" => {
                    events.extend(self.decode(&dispatch.data, interaction).await?);
                    answers.extend(commands::answer(&dispatch.data));
                }
                _ => {}
            }
            if let Some(session) = &mut self.cursor.session {
                session.seq = dispatch.seq;
            }
        }
        let seq = self
            .cursor
            .session
            .as_ref()
            .map_or(0, |session| session.seq);
        if !events.is_empty() || seq > self.stored_seq.saturating_add(MAX_UNSTORED) {
            self.store(events).await?;
        }
        self.answer(answers).await;
        Ok(())
    }

    /// Answers commands that are stored. A failure is logged.
    async fn answer(&self, answers: Vec<Answer>) {
        let rest = self.tools.rest;
        let calls = answers.into_iter().map(async |answer| {
            let body = bodies::press_answer(&answer.text);
            let call = rest.answer_interaction(&answer.interaction, &answer.token, body);
            match timeout(ANSWER_TIMEOUT, call).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    let error = PlatformError::from(error);
                    tracing::debug!(%error, "a command cannot be answered");
                }
                Err(_) => tracing::debug!("the answer to a command timed out"),
            }
        });
        join_all(calls).await;
    }

    /// Begins a session: what was missed since the former one is fetched and stored first.
    async fn begin(&mut self, ready: &Dispatch) -> Result<(), PlatformError> {
        let data = &ready.data;
        if let Some(bot) = id(&data["user"]["id"]) {
            self.cursor.bot = Some(bot.to_owned());
        }
        self.cursor.session = None;
        let channels = self.cursor.channels.clone();
        for (channel, after) in channels {
            self.fetch_missed(&channel, after).await?;
        }
        let text = |key: &str| data[key].as_str().map(ToOwned::to_owned);
        if let (Some(session_id), Some(resume_gateway_url)) =
            (text("session_id"), text("resume_gateway_url"))
        {
            self.cursor.session = Some(Session {
                session_id,
                resume_gateway_url,
                seq: ready.seq,
            });
            self.store(Vec::new()).await?;
        }
        Ok(())
    }

    /// Stores the missed messages of a channel. A failure is logged.
    async fn fetch_missed(
        &mut self,
        channel: &str,
        mut after: String,
    ) -> Result<(), PlatformError> {
        for _ in 0..catch_up::MAX_PAGES {
            let page = match catch_up::page(self.tools.rest, channel, &after).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(channel, %error, "missed messages cannot be fetched");
                    break;
                }
            };
            let Some(last) = page.last().and_then(|message| id(&message["id"])) else {
                break;
            };
            last.clone_into(&mut after);
            let is_complete = page.len() < usize::from(catch_up::PAGE);
            let mut events = Vec::new();
            for message in &page {
                events.extend(self.decode(message, decode::message).await?);
                self.note(message);
            }
            self.store(events).await?;
            if is_complete {
                break;
            }
        }
        Ok(())
    }

    fn note(&mut self, message: &Value) {
        if let (Some(channel), Some(message)) = (id(&message["channel_id"]), id(&message["id"])) {
            self.cursor.note(channel, message);
        }
    }

    async fn decode(
        &self,
        data: &Value,
        decode: fn(&Value, View<'_>) -> Result<Option<Event>, &'static str>,
    ) -> Result<Option<Event>, PlatformError> {
        let place = self.place_of(data).await?;
        Ok(self.decode_in(&place, data, decode))
    }

    fn decode_in(
        &self,
        place: &Place,
        data: &Value,
        decode: fn(&Value, View<'_>) -> Result<Option<Event>, &'static str>,
    ) -> Option<Event> {
        let view = View {
            bot: self.cursor.bot.as_deref().unwrap_or_default(),
            thread_mode: self.tools.options.thread_mode,
            place,
        };
        decode(data, view).unwrap_or_else(|problem| {
            tracing::warn!(problem, "discord sent a malformed event");
            None
        })
    }

    /// Returns the channel of an event. An unknown one of a guild is looked up.
    async fn place_of(&self, data: &Value) -> Result<Place, PlatformError> {
        let Some(channel) = id(&data["channel_id"]) else {
            return Ok(Place::default());
        };
        if let Some(place) = self.tools.places.lock().get(channel) {
            return Ok(place);
        }
        let described = &data["channel"];
        let place = if described["id"] == channel {
            Place::read(described, id(&data["guild_id"]))
        } else {
            self.look_up(channel, id(&data["guild_id"])).await?
        };
        self.tools
            .places
            .lock()
            .add(channel.to_owned(), place.clone());
        Ok(place)
    }

    async fn look_up(&self, channel: &str, guild: Option<&str>) -> Result<Place, PlatformError> {
        for _ in 0..LOOKUPS {
            let pause = match self.tools.rest.channel(channel).await {
                Ok(found) => return Ok(Place::read(&found, guild)),
                Err(ApiError::Code { code, .. }) => {
                    tracing::debug!(channel, code, "the channel cannot be looked up");
                    break;
                }
                Err(ApiError::Failed(PlatformError::RateLimited { retry_after, .. })) => {
                    retry_after
                }
                Err(ApiError::Failed(PlatformError::Unavailable(_))) => {
                    self.tools.options.pauses.store
                }
                Err(ApiError::Failed(error)) => return Err(error),
            };
            self.pause(pause).await?;
        }
        Ok(Place {
            guild: guild.map(ToOwned::to_owned),
            ..Place::default()
        })
    }

    /// Stores events with the cursor. Returns only after a success, unless another node serves the
    /// account or the listener stops.
    async fn store(&mut self, events: Vec<Event>) -> Result<(), PlatformError> {
        let cursor = self.cursor.text();
        let mut is_reported = false;
        loop {
            match self.tools.sink.accept(events.clone(), cursor.clone()).await {
                Ok(()) => break,
                Err(SinkError::Fenced) => return Err(SinkError::Fenced.into()),
                Err(error) => {
                    if !is_reported {
                        tracing::warn!(%error, "discord events wait for the inbox");
                        is_reported = true;
                    }
                    self.pause(self.tools.options.pauses.store).await?;
                }
            }
        }
        self.stored_seq = self
            .cursor
            .session
            .as_ref()
            .map_or(0, |session| session.seq);
        Ok(())
    }

    async fn pause(&self, pause: Duration) -> Result<(), PlatformError> {
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            () = self.tools.stop.cancelled() => {
                Err(PlatformError::Unavailable("the listener stops".to_owned()))
            }
        }
    }
}
