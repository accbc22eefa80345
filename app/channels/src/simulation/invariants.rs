//! What must hold after the faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::channels::{Account, InboxFilter, InboxState, OutgoingFilter, OutgoingState};
use tokio::time::{sleep, timeout};

use super::world::{CHATS, SendEffect, World};
use crate::words;

/// Maximum time until everything is answered.
const LIMIT: Duration = Duration::from_secs(3_600);

/// Waits until every message is acknowledged, handled and answered.
pub(super) async fn wait_until_finished(world: &Arc<World>) {
    let finishing = async {
        while !is_finished(world).await {
            sleep(Duration::from_secs(1)).await;
        }
    };
    if timeout(LIMIT, finishing).await.is_err() {
        world.violation("not everything is answered in time");
    }
}

async fn is_finished(world: &World) -> bool {
    let account = Account::new("memory", "bot");
    let waiting = world
        .stores
        .inbox
        .backlog(&account)
        .await
        .expect("no fault");
    let pending = world.stores.outbox.depth(&account).await.expect("no fault");
    world.platform.unacknowledged() == 0 && waiting.0 == 0 && pending == 0
}

/// Checks what people see, and how it came about.
pub(super) async fn check(world: &Arc<World>) {
    let written = world.observed.lock().written.clone();
    for chat in CHATS {
        let labels = written.get(chat).cloned().unwrap_or_default();
        let expected: Vec<String> = labels
            .iter()
            .map(|label| format!("{label} one two three"))
            .collect();
        let mut shown = world.platform.texts(chat);
        shown.retain(|text| text != words::QUEUED);
        if !world.has_keys {
            let (before, mut seen) = (shown.len(), BTreeSet::new());
            shown.retain(|text| seen.insert(text.clone()));
            world.observed.lock().counts.repetitions += before - shown.len();
        }
        if shown != expected {
            world.violation(format_args!("{chat} shows {shown:?}, not {expected:?}"));
        }
        for label in labels {
            let calls = world.observed.lock().calls.get(&label).copied();
            if calls != Some(1) {
                world.violation(format_args!("{label} has {calls:?} calls of the model"));
            }
        }
    }
    check_live_messages(world);
    check_rows(world).await;
    check_repetitions(world);
}

/// A live message is completed, or the platform could not know that it was repeated.
fn check_live_messages(world: &World) {
    let unfinished: Vec<_> = world
        .platform
        .messages()
        .into_iter()
        .filter(|message| world.has_keys && !message.is_final)
        .collect();
    if !unfinished.is_empty() {
        world.violation(format_args!(
            "live messages stay unfinished: {unfinished:?}"
        ));
    }
}

/// Every row has ended as answered, and every reply was sent.
async fn check_rows(world: &World) {
    let filter = InboxFilter {
        limit: 1_000,
        ..InboxFilter::default()
    };
    for row in world.stores.inbox.list(&filter).await.expect("no fault") {
        if row.state != InboxState::Answered {
            world.violation(format_args!(
                "a row ended as {:?}: {:?}",
                row.state, row.note
            ));
        }
    }
    let filter = OutgoingFilter {
        limit: 1_000,
        ..OutgoingFilter::default()
    };
    for row in world.stores.outbox.list(&filter).await.expect("no fault") {
        if row.state != OutgoingState::Sent {
            world.violation(format_args!("a reply is {:?}: {:?}", row.state, row.error));
        }
    }
}

/// A message is sent again only if the success of the former call was lost.
fn check_repetitions(world: &World) {
    let observed = world.observed.lock();
    let mut of_delivery: BTreeMap<_, Vec<&SendEffect>> = BTreeMap::new();
    for send in &observed.sends {
        of_delivery.entry(send.delivery).or_default().push(send);
    }
    let is_lost = |send: &&&SendEffect| {
        send.is_lost
            || send.process.is_dead()
            || send.process.freeze_count() > send.freezes
            || observed.unrecorded.contains(&send.delivery)
    };
    let repeated: Vec<String> = of_delivery
        .values()
        .filter(|sends| sends.len() > 1 + sends.iter().filter(is_lost).count())
        .map(|sends| sends[0].text.clone())
        .collect();
    drop(observed);
    if !repeated.is_empty() {
        world.violation(format_args!("sent again without a reason: {repeated:?}"));
    }
}
