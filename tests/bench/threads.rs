//! Threads for a load, made before it, so that figures of runs do not contain them.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::body::Bytes;
use deerflow_tests::{spread::Spread, usage::Usage};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::{client::Client, load::Target, meter::Server};

/// Number of clients that make threads at the same time.
const MAKERS: usize = 16;

/// Cost of `POST /threads`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadFigures {
    pub(super) threads: usize,
    pub(super) time: Spread,
    pub(super) usage: Usage,
}

/// Makes this many empty threads and measures the server meanwhile.
pub(super) async fn create(
    server: &Server,
    target: &Target,
    threads: usize,
) -> anyhow::Result<(Vec<String>, ThreadFigures)> {
    let remaining = Arc::new(Mutex::new(threads));
    let made = server.measured(async {
        let mut makers = JoinSet::new();
        for _ in 0..MAKERS.min(threads) {
            makers.spawn(make(target.clone(), Arc::clone(&remaining)));
        }
        let mut all = Vec::with_capacity(threads);
        while let Some(made) = makers.join_next().await {
            all.extend(made.context("a client panicked")??);
        }
        anyhow::Ok(all)
    });
    let (made, measured) = made.await?;
    let (ids, times): (Vec<_>, Vec<_>) = made?.into_iter().unzip();
    let figures = ThreadFigures {
        threads,
        time: Spread::of(times),
        usage: measured.usage,
    };
    Ok((ids, figures))
}

async fn make(
    target: Target,
    remaining: Arc<Mutex<usize>>,
) -> anyhow::Result<Vec<(String, Duration)>> {
    let take = || {
        let mut remaining = remaining.lock();
        let rest = remaining.checked_sub(1);
        rest.map(|rest| *remaining = rest).is_some()
    };
    let mut client = Client::connect(target.address).await?;
    let path = format!("{}/threads", target.prefix);
    let mut made = Vec::new();
    while take() {
        let began = Instant::now();
        let thread = client.post(&path, Bytes::from_static(b"{}")).await?;
        let id = thread["thread_id"].as_str().context("a thread id")?;
        made.push((id.to_owned(), began.elapsed()));
    }
    Ok(made)
}

/// Writes a conversation of this many messages to each thread by one update of its state. `length`
/// is the size of each text in bytes.
pub(super) async fn fill(
    target: &Target,
    threads: &[String],
    messages: usize,
    length: usize,
) -> anyhow::Result<()> {
    let body = Bytes::from(conversation(messages, length).to_string());
    let mut client = Client::connect(target.address).await?;
    for thread in threads {
        let path = format!("{}/threads/{thread}/state", target.prefix);
        client.post(&path, body.clone()).await?;
    }
    Ok(())
}

/// Returns an update of the state with questions and answers in turn.
fn conversation(messages: usize, length: usize) -> Value {
    let message = |place: usize| {
        let role = if place.is_multiple_of(2) {
            "human"
        } else {
            "ai"
        };
        let mut text = format!("message {place} ");
        while text.len() < length {
            text.push_str("of a long conversation ");
        }
        text.truncate(length);
        json!({"type": role, "id": format!("message-{place}"), "content": text})
    };
    let messages: Vec<Value> = (0..messages).map(message).collect();
    json!({"values": {"messages": messages}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_have_the_given_number_and_length() {
        let update = conversation(3, 1_000);
        let messages = update["values"]["messages"].as_array().expect("messages");
        let roles: Vec<_> = messages.iter().map(|message| &message["type"]).collect();
        assert_eq!(roles, ["human", "ai", "human"]);
        let text = messages[2]["content"].as_str().expect("a text");
        assert_eq!(text.len(), 1_000);
    }
}
