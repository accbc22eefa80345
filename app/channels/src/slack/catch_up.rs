//! Messages that arrived while no connection was open.

use std::collections::VecDeque;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;

use super::api::Api;
use super::cursor::Place;
use super::events::{self, Decoded, Me};
use super::history;
use super::text::is_timestamp;
use crate::platform::{Event, EventBody};

/// Messages of one place, complete and oldest first.
#[derive(Debug)]
pub(super) struct Found {
    /// Place.
    pub(super) place: Place,
    /// Events.
    pub(super) events: Vec<Event>,
}

/// Fetches the missed messages of each place in turn. A place that cannot be listed has none.
pub(super) fn fetch<'a>(
    api: &'a Api,
    me: &'a Me,
    places: Vec<(Place, String)>,
) -> BoxStream<'a, Found> {
    let places: VecDeque<_> = places.into();
    stream::unfold(places, async move |mut places| {
        let (place, oldest) = places.pop_front()?;
        let messages = history::list(api, &place, &oldest)
            .await
            .unwrap_or_else(|failure| {
                tracing::warn!(
                    channel = place.channel,
                    ?failure,
                    "missed messages were not fetched"
                );
                Vec::new()
            });
        let events = select(&messages, &place, me);
        // The answers to a message that was missed were missed too.
        let threads = messages
            .iter()
            .filter_map(|message| started_thread(message, &events));
        if place.thread.is_none() {
            places.extend(threads.map(|ts| {
                let thread = Place {
                    channel: place.channel.clone(),
                    thread: Some(ts.to_owned()),
                };
                (thread, ts.to_owned())
            }));
        }
        Some((Found { place, events }, places))
    })
    .boxed()
}

/// Returns the events of a place: all in threads, and those that are for the bot in channels.
fn select(messages: &[Value], place: &Place, me: &Me) -> Vec<Event> {
    messages
        .iter()
        .filter_map(
            |message| match events::message(message, &me.team, &place.channel, me) {
                Decoded::Event(event) => Some(*event),
                Decoded::Ignored => None,
                Decoded::Broken(problem) => {
                    tracing::warn!(channel = place.channel, problem, "missed message skipped");
                    None
                }
            },
        )
        .filter(|event| match &event.body {
            EventBody::Message(message) => message.addressed || place.thread.is_some(),
            _ => false,
        })
        .filter(|event| place.thread.as_ref() != Some(&event.id))
        .collect()
}

/// Returns the timestamp of a message for the bot that has answers in a thread.
fn started_thread<'a>(message: &'a Value, events: &[Event]) -> Option<&'a str> {
    let ts = message["ts"].as_str().filter(|ts| is_timestamp(ts))?;
    let has_answers = message["reply_count"].as_u64().unwrap_or(0) > 0;
    (has_answers && events.iter().any(|event| event.id == ts)).then_some(ts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(channel: &str, thread: Option<&str>) -> Place {
        Place {
            channel: channel.to_owned(),
            thread: thread.map(str::to_owned),
        }
    }

    #[test]
    fn messages_for_the_bot_and_threads_are_selected() {
        let me = Me {
            team: "T1".to_owned(),
            user: "UBOT".to_owned(),
            dm_threads: false,
        };
        let messages = [
            json!({"type": "message", "user": "U1", "ts": "1.1", "text": "<@UBOT> a", "reply_count": 1}),
            json!({"type": "message", "user": "U1", "ts": "2.1", "text": "b"}),
            json!({"type": "message", "user": "UBOT", "ts": "3.1", "text": "c"}),
            json!({"type": "message", "ts": 7}),
        ];
        let ids = |place: &Place| {
            let events = select(&messages, place, &me);
            events.into_iter().map(|event| event.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&place("C1", None)), ["1.1"]);
        assert_eq!(ids(&place("C1", Some("1.1"))), ["2.1"]);
        assert_eq!(ids(&place("D1", None)), ["1.1", "2.1"]);
        let events = select(&messages, &place("D1", None), &me);
        assert_eq!(started_thread(&messages[0], &events), Some("1.1"));
        assert_eq!(started_thread(&messages[1], &events), None);
    }
}
