//! Tests of the bounds of retained states.

use super::*;
use deerflow_core::ids::SeededIds;
use deerflow_core::messages::Message;
use deerflow_core::state::StateUpdate;

fn thread(n: usize) -> ThreadId {
    ThreadId::parse(format!("t{n}")).unwrap()
}

fn head(log_tail: u64) -> ThreadHead {
    ThreadHead {
        checkpoint_id: None,
        log_tail,
    }
}

fn state(text_bytes: usize) -> StateAtHead {
    let mut state = ThreadState::default();
    let update = StateUpdate::messages([Message::human("x".repeat(text_bytes))]);
    state.apply(update, &SeededIds::new(1)).unwrap();
    StateAtHead {
        head: head(1),
        size: StateSize::of(&state),
        state: Arc::new(state),
        step: 0,
    }
}

#[test]
fn state_is_returned_for_its_own_head_only() {
    let heads = ThreadHeads::bounded(1 << 20);
    heads.store(&thread(1), state(10));
    assert!(heads.take(&thread(2), &head(1)).is_none());
    assert!(heads.take(&thread(1), &head(1)).is_some());
    assert!(heads.take(&thread(1), &head(1)).is_none());
    heads.store(&thread(1), state(10));
    assert!(heads.take(&thread(1), &head(2)).is_none());
    assert_eq!(heads.retained.lock().bytes, 0);
}

#[test]
fn removed_state_frees_its_bytes() {
    let heads = ThreadHeads::bounded(1 << 20);
    heads.store(&thread(1), state(10));
    heads.store(&thread(2), state(10));
    heads.remove(&thread(1));
    heads.remove(&thread(1));
    assert!(!heads.contains(&thread(1)));
    assert_eq!(heads.retained.lock().bytes, state(10).size.bytes());
    heads.remove(&thread(2));
    assert_eq!(heads.retained.lock().bytes, 0);
}

#[test]
fn least_recently_stored_states_are_evicted() {
    let each = state(1_000).size.bytes();
    let heads = ThreadHeads::bounded(3 * each);
    for n in [1, 2, 3, 1, 4] {
        heads.store(&thread(n), state(1_000));
    }
    assert_eq!(heads.retained.lock().bytes, 3 * each);
    let retained: Vec<_> = (1..=4)
        .map(|n| heads.take(&thread(n), &head(1)).is_some())
        .collect();
    assert_eq!(retained, [true, false, true, true]);
}

#[test]
fn state_larger_than_the_limit_is_not_retained() {
    let heads = ThreadHeads::bounded(10_000);
    heads.store(&thread(1), state(10));
    heads.store(&thread(2), state(10_000));
    assert!(heads.take(&thread(2), &head(1)).is_none());
    heads.store(&thread(3), state(10));
    heads.store(&thread(3), state(10_000));
    assert!(!heads.contains(&thread(3)));
    assert_eq!(heads.retained.lock().bytes, state(10).size.bytes());
    assert!(heads.take(&thread(1), &head(1)).is_some());
}

#[tokio::test(start_paused = true)]
async fn unused_states_are_evicted_down_to_their_bound() {
    let each = MAX_UNUSED_BYTES / 2;
    let heads = ThreadHeads::bounded(usize::MAX);
    for n in 0..4 {
        heads.store(&thread(n), state(each));
    }
    let retained = || (0..6).filter(|n| heads.contains(&thread(*n))).collect();
    let wait = async |time| {
        let _elapsed = tokio::time::timeout(time, heads.evict_unused_states()).await;
    };
    wait(UNUSED_AFTER - EVICTION_INTERVAL).await;
    heads.store(&thread(0), state(each));
    let all: Vec<usize> = retained();
    assert_eq!(all, [0, 1, 2, 3]);
    wait(2 * EVICTION_INTERVAL).await;
    let bounded: Vec<usize> = retained();
    assert_eq!(bounded, [0]);
}
