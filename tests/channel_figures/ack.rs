//! Time from the delivery of a message to its acknowledgement.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deerflow_tests::spread::Spread;
use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval};

use crate::arguments::Arguments;
use crate::report;
use crate::rig::{Gateway, PlatformName, Platforms, Setup};

/// Messages per second.
const RATE: u32 = 200;
/// Number of chats.
const CHATS: usize = 100;
/// Time within which the last messages are acknowledged.
const LIMIT: Duration = Duration::from_secs(120);
/// Time after which a platform considers a message as not received.
const ALWAYS_WITHIN: Duration = Duration::from_secs(3);

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let names = [PlatformName::Telegram, PlatformName::Slack];
    let selected = arguments.platforms();
    for name in names.into_iter().filter(|name| selected.contains(name)) {
        let platforms = Platforms::start(false).await?;
        let setup = Setup {
            sections: "memory: {enabled: false}\n".to_owned(),
            ..Setup::default()
        };
        let gateway = Gateway::start(arguments, &platforms, &[name], setup).await?;
        let times = match name {
            PlatformName::Telegram => telegram(&platforms, &gateway, arguments).await?,
            _ => slack(&platforms, &gateway, arguments).await?,
        };
        let late = times.iter().filter(|time| **time > ALWAYS_WITHIN).count();
        report::line(&format!(
            "{}: {} messages at {RATE}/s: {}; {late} after more than 3 s; load average {}",
            name.key(),
            times.len(),
            Spread::of(times),
            report::load()
        ))?;
    }
    Ok(())
}

/// Calls `say` with a number and a text at the rate of the case, and returns the number of calls.
async fn at_rate(time: Duration, mut say: impl FnMut(usize, &str)) -> usize {
    let mut clock = interval(Duration::from_secs(1) / RATE);
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < time {
        clock.tick().await;
        say(count, "then say Hello.");
        count += 1;
    }
    count
}

/// Measures until the offset of a poll confirms a message.
async fn telegram(
    platforms: &Platforms,
    gateway: &Gateway,
    arguments: &Arguments,
) -> anyhow::Result<Vec<Duration>> {
    let said: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let times: Mutex<Vec<Duration>> = Mutex::default();
    let saying = async {
        at_rate(arguments.ack_time(), |number, text| {
            let mut said = said.lock();
            platforms.say(PlatformName::Telegram, number % CHATS, text);
            said.push(Instant::now());
        })
        .await
    };
    let confirmations = platforms.telegram.wait_for(|people| {
        let said = said.lock();
        let confirmed = said.len() - people.unconfirmed().min(said.len());
        let (now, mut times) = (Instant::now(), times.lock());
        let first = times.len();
        let new = said.iter().take(confirmed).skip(first);
        times.extend(new.map(|at| now - *at));
        None::<()>
    });
    let count = tokio::select! {
        count = async {
            let count = saying.await;
            let complete = async || times.lock().len() == count;
            gateway.until("all messages are confirmed", LIMIT, complete).await.map(|()| count)
        } => count?,
        () = confirmations => 0,
    };
    let times = times.into_inner();
    anyhow::ensure!(
        times.len() == count,
        "{} of {count} are confirmed",
        times.len()
    );
    Ok(times)
}

/// Measures from each envelope to its acknowledgement.
async fn slack(
    platforms: &Platforms,
    gateway: &Gateway,
    arguments: &Arguments,
) -> anyhow::Result<Vec<Duration>> {
    let count = at_rate(arguments.ack_time(), |number, text| {
        platforms.say(PlatformName::Slack, number % CHATS, text);
    })
    .await;
    let calls = platforms.slack.calls();
    let complete = async || calls.of("ack").len() >= count;
    gateway
        .until("all envelopes are acknowledged", LIMIT, complete)
        .await?;
    let text =
        |value: &serde_json::Value| value["envelope_id"].as_str().unwrap_or_default().to_owned();
    let sent: HashMap<String, u64> = calls
        .of("envelope")
        .iter()
        .map(|call| (text(&call.body), call.at_ms))
        .collect();
    let acks = calls.of("ack");
    let late = acks.iter().filter(|call| call.error != 0).count();
    anyhow::ensure!(
        late == 0,
        "{late} acknowledgements after the platform's timeout"
    );
    anyhow::ensure!(
        sent.len() == count,
        "{} envelopes for {count} messages",
        sent.len()
    );
    let took = |call: &deerflow_chat_platforms::common::Call| {
        let sent = sent.get(&text(&call.body))?;
        Some(Duration::from_millis(call.at_ms.saturating_sub(*sent)))
    };
    Ok(acks.iter().filter_map(took).collect())
}
