//! Streaming conversations against fakes that enforce the rate limits of the platforms.

use std::time::{Duration, Instant};

use deerflow_chat_platforms::common::{Call, Fault};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::report;
use crate::rig::{Gateway, Model, PlatformName, Platforms, Reply, Setup, Talks, end_of};

/// Conversations of each platform.
const CONVERSATIONS: usize = 50;
/// Delay that an injected refusal names, in seconds.
const RETRY_AFTER: u64 = 33;
/// Time in which a call that was sent before the refusal still arrives.
const IN_FLIGHT_MS: u64 = 100;
/// Time before a refused call of which calls are listed.
const BEFORE_MS: u64 = 60_000;
/// Codes with which the platforms refuse calls because of rates.
const REFUSALS: [i64; 6] = [429, 99_991_400, 230_020, 11_232, 11_247, 45_009];

pub(crate) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let platforms = Platforms::start(true).await?;
    let model = Model::start(|_, question| Reply {
        text: format!(
            "{}{}",
            "Words of a streamed answer. ".repeat(40),
            end_of(question)
        ),
        pieces: 40 + (question as usize * 37) % 120,
        gap: Duration::from_millis(200),
        ..Reply::default()
    })
    .await?;
    let setup = Setup {
        model: Some(model.base()),
        channel: "    max_exchanges_per_minute: 0\n".to_owned(),
        sections: "memory: {enabled: false}\n".to_owned(),
        ..Setup::default()
    };
    let names = arguments.platforms();
    let gateway = Gateway::start(arguments, &platforms, &names, setup).await?;
    let mut talks = Talks::new(&names, CONVERSATIONS);
    let started = Instant::now();
    let time = arguments.limit_time();
    let streamed = talks.stream(&platforms, || started.elapsed() >= time).await;
    let mut refused = 0;
    for name in &names {
        let calls = platforms.calls(*name).all();
        let of_platform: Vec<&Call> = calls.iter().filter(|call| is_refused(call)).collect();
        refused += of_platform.len();
        report::line(&format!(
            "{}: {CONVERSATIONS} conversations for {} s: {} answers, {} calls, {} refused{}",
            name.key(),
            time.as_secs(),
            talks.answered(*name),
            calls.len(),
            of_platform.len(),
            methods(&of_platform)
        ))?;
        for refused in of_platform {
            report::line(&before(*name, refused, &calls))?;
        }
    }
    streamed?;
    let early = closed_lanes(&platforms, &names, &mut talks, &gateway).await?;
    anyhow::ensure!(
        refused == 0,
        "{refused} calls were refused because of rates"
    );
    anyhow::ensure!(early == 0, "{early} calls in a closed lane");
    Ok(())
}

fn is_refused(call: &Call) -> bool {
    REFUSALS.contains(&call.error)
}

/// Lists a refused call and those of its lane and of its method shortly before.
fn before(name: PlatformName, refused: &Call, calls: &[Call]) -> String {
    let age = |call: &Call| refused.at_ms.saturating_sub(call.at_ms);
    let is_near = |call: &&Call| call.at_ms <= refused.at_ms && age(call) <= BEFORE_MS;
    let of_method = calls.iter().filter(is_near);
    let of_method = of_method.filter(|call| call.method == refused.method);
    let of_lane = calls.iter().filter(is_near);
    let of_lane = of_lane.filter(|call| lane(name, call) == lane(name, refused));
    let newest = of_lane.rev().take(8);
    let newest: Vec<String> = newest
        .map(|call| format!("{} {} ms before", call.method, age(call)))
        .collect();
    format!(
        "  {} was refused with {}; {} calls of it within a minute; in its lane: {}",
        refused.method,
        refused.error,
        of_method.count(),
        newest.join(", ")
    )
}

fn methods(calls: &[&Call]) -> String {
    let mut methods: Vec<&str> = calls.iter().map(|call| call.method.as_str()).collect();
    methods.sort_unstable();
    methods.dedup();
    if methods.is_empty() {
        String::new()
    } else {
        format!(": {}", methods.join(", "))
    }
}

/// Refuses one call of each of these methods with a delay, and returns the number of calls in their
/// lanes during the delay.
async fn closed_lanes(
    platforms: &Platforms,
    names: &[PlatformName],
    talks: &mut Talks,
    gateway: &Gateway,
) -> anyhow::Result<usize> {
    let mut injected = Vec::new();
    for name in names {
        for method in refusable(*name) {
            let fault = Fault::RateLimited {
                retry_after: RETRY_AFTER as f64,
                silent: false,
            };
            platforms.faults(*name).script(*method, [fault]);
            injected.push((*name, *method));
        }
    }
    let before: Vec<usize> = names
        .iter()
        .map(|name| platforms.calls(*name).all().len())
        .collect();
    let (started, time) = (Instant::now(), Duration::from_secs(RETRY_AFTER + 10));
    talks
        .stream(platforms, || started.elapsed() >= time)
        .await?;
    let mut early = 0;
    for (name, method) in injected {
        let at = names
            .iter()
            .position(|other| *other == name)
            .unwrap_or_default();
        let calls = platforms.calls(name).all().split_off(before[at]);
        let refused = calls
            .iter()
            .find(|call| call.method == method && is_refused(call));
        let Some(refused) = refused else {
            report::line(&format!("{}: {method} was not called", name.key()))?;
            continue;
        };
        let during: Vec<&Call> = calls
            .iter()
            .filter(|call| lane(name, call).is_some() && lane(name, call) == lane(name, refused))
            .filter(|call| {
                let after = call.at_ms.saturating_sub(refused.at_ms);
                (IN_FLIGHT_MS..RETRY_AFTER * 1_000).contains(&after)
            })
            .collect();
        early += during.len();
        report::line(&format!(
            "{}: {} calls in the lane within {RETRY_AFTER} s after a refused {method}{}",
            name.key(),
            during.len(),
            methods(&during)
        ))?;
    }
    gateway.connected(names).await?;
    Ok(early)
}

/// Returns the methods that a refusal with a delay is injected into.
fn refusable(name: PlatformName) -> &'static [&'static str] {
    match name {
        PlatformName::Telegram => &["sendMessage", "sendMessageDraft"],
        PlatformName::Slack => &["chat.postMessage", "chat.update"],
        PlatformName::Discord => &["create_message", "edit_message"],
        PlatformName::DingTalk => &["stream_card"],
        // Their limits have no chat in the call.
        PlatformName::Feishu | PlatformName::WeCom => &[],
    }
}

/// Returns the lane of a call: its chat, or its card.
fn lane(name: PlatformName, call: &Call) -> Option<String> {
    // Slack limits each method by itself; reads of the history are no messages to the channel.
    if call.method.starts_with("conversations.") {
        return None;
    }
    let field = match name {
        PlatformName::Telegram => "chat_id",
        PlatformName::Slack => "channel",
        PlatformName::Discord => "_channel",
        _ => "outTrackId",
    };
    match &call.body[field] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
