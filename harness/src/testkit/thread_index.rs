//! Contract of thread indexes.

use chrono::{DateTime, Duration, Utc};

use crate::clock::SystemClock;
use crate::ids::{SeededIds, ThreadId};
use crate::middlewares::goal::{Goals, MAX_CONTINUATIONS};
use crate::runtime::checkpoint::Checkpointer;
use crate::runtime::runs::ThreadStatus;
use crate::runtime::threads::{ThreadError, ThreadIndex};

/// A thread is created once, for one user. Other users do not see it; its owner sees it in lists
/// and individually, with its state. `checkpoints` are those of the same threads.
pub async fn satisfies_thread_index_contract(
    index: &dyn ThreadIndex,
    checkpoints: &dyn Checkpointer,
) {
    let id = |n: u32| {
        ThreadId::parse(format!("63fc735a-a27d-408f-adc4-705b1c1c70{n:02}")).expect("an id")
    };
    let start: DateTime<Utc> = "2026-01-01T12:00:00Z".parse().expect("a moment");
    assert_eq!(index.status("ann", &id(1)).await.expect("a read"), None);
    assert_eq!(index.get("ann", &id(1)).await.expect("a read"), None);
    for n in [1, 2, 1] {
        let created = index
            .find_or_make("ann", &id(n), start + Duration::minutes(n.into()))
            .await;
        assert_eq!(created.expect("a thread"), ThreadStatus::Idle);
    }
    let existing = index.find_or_make("bob", &id(1), start).await;
    assert!(
        matches!(&existing, Err(ThreadError::Taken(thread)) if *thread == id(1)),
        "{existing:?}"
    );
    assert_eq!(
        (
            index.status("bob", &id(1)).await.expect("a read"),
            index.get("bob", &id(1)).await.expect("a read")
        ),
        (None, None)
    );
    assert_eq!(index.list("bob", 10).await.expect("a list"), []);

    let listed = index.list("ann", 10).await.expect("a list");
    assert_eq!(
        listed
            .iter()
            .map(|thread| &thread.thread_id)
            .collect::<Vec<_>>(),
        [&id(2), &id(1)],
        "most recently changed first"
    );
    assert_eq!(index.list("ann", 1).await.expect("a list"), listed[..1]);
    assert!(
        listed
            .iter()
            .all(|thread| thread.values.is_empty() && thread.interrupts.is_empty())
    );
    assert_eq!(
        index.get("ann", &id(1)).await.expect("a read").as_ref(),
        listed.last(),
        "a thread without a state"
    );

    let goals = Goals {
        user: "ann",
        threads: index,
        checkpoints,
        clock: &SystemClock,
        ids: &SeededIds::new(7),
    };
    let goal = goals
        .set(&id(1), " rest ", MAX_CONTINUATIONS)
        .await
        .expect("a goal");
    let view = index
        .get("ann", &id(1))
        .await
        .expect("a read")
        .expect("a thread");
    assert_eq!(
        view.values["goal"],
        serde_json::to_value(&goal.goal).expect("a value"),
        "the newest state is returned"
    );
    assert_eq!(goals.clear(&id(1)).await.expect("cleared").goal, None);
    assert_eq!(
        index
            .get("ann", &id(1))
            .await
            .expect("a read")
            .expect("a thread")
            .values
            .get("goal"),
        None
    );
}

#[cfg(test)]
mod tests {
    use crate::runtime::in_memory::InMemoryStores;

    #[tokio::test]
    async fn threads_are_visible_to_their_owner() {
        let stores = InMemoryStores::new();
        super::satisfies_thread_index_contract(&stores, &stores).await;
    }
}
