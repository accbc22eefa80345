//! What every index of threads promises.

use chrono::{DateTime, Duration, Utc};

use crate::clock::SystemClock;
use crate::ids::{SeededIds, ThreadId};
use crate::middlewares::goal::{Goals, MAX_CONTINUATIONS};
use crate::runtime::checkpoint::Checkpointer;
use crate::runtime::runs::ThreadStatus;
use crate::runtime::threads::{ThreadError, ThreadIndex};

/// A thread is made once, for one user; nobody else sees it, and its owner sees it in lists and alone, with its state. `checkpoints` are
/// those of the same threads.
pub async fn keeps_its_promises(index: &dyn ThreadIndex, checkpoints: &dyn Checkpointer) {
    let id = |n: u32| {
        ThreadId::parse(format!("63fc735a-a27d-408f-adc4-705b1c1c70{n:02}")).expect("an id")
    };
    let start: DateTime<Utc> = "2026-01-01T12:00:00Z".parse().expect("a moment");
    assert_eq!(index.status("ann", &id(1)).await.expect("a look"), None);
    assert_eq!(index.get("ann", &id(1)).await.expect("a look"), None);
    for n in [1, 2, 1] {
        let made = index
            .find_or_make("ann", &id(n), start + Duration::minutes(n.into()))
            .await;
        assert_eq!(made.expect("a thread"), ThreadStatus::Idle);
    }
    let taken = index.find_or_make("bob", &id(1), start).await;
    assert!(
        matches!(&taken, Err(ThreadError::Taken(thread)) if *thread == id(1)),
        "{taken:?}"
    );
    assert_eq!(
        (
            index.status("bob", &id(1)).await.expect("a look"),
            index.get("bob", &id(1)).await.expect("a look")
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
        "what changed last comes first"
    );
    assert_eq!(index.list("ann", 1).await.expect("a list"), listed[..1]);
    assert!(
        listed
            .iter()
            .all(|thread| thread.values.is_empty() && thread.interrupts.is_empty())
    );
    assert_eq!(
        index.get("ann", &id(1)).await.expect("a look").as_ref(),
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
    let shown = index
        .get("ann", &id(1))
        .await
        .expect("a look")
        .expect("a thread");
    assert_eq!(
        shown.values["goal"],
        serde_json::to_value(&goal.goal).expect("a value"),
        "its newest state is shown"
    );
    assert_eq!(goals.clear(&id(1)).await.expect("cleared").goal, None);
    assert_eq!(
        index
            .get("ann", &id(1))
            .await
            .expect("a look")
            .expect("a thread")
            .values
            .get("goal"),
        None
    );
}
