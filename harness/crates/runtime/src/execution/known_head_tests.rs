//! Tests of runs that start without a read of their thread.

use std::sync::Arc;

use crate::checkpoint::{CheckpointSource, ExternalUpdate, Snapshot, ThreadHead};
use crate::in_memory::runtime_in_memory;
use crate::ports::RuntimePorts;
use crate::runs::*;
use crate::test_support::*;
use deerflow_core::ids::SeededIds;
use deerflow_core::messages::Message;
use deerflow_core::state::StateUpdate;

fn counted() -> (RuntimePorts, Arc<CountingCheckpointer>) {
    let ports = runtime_in_memory(Arc::new(Agents::default())).unwrap();
    let counting = CountingCheckpointer::over(ports.checkpointer.clone());
    let ports = RuntimePorts {
        checkpointer: counting.clone(),
        ..ports
    };
    (ports, counting)
}

/// Executes a run and returns the texts of the thread after it.
async fn answer(facade: &RunsFacade, assistant: &str) -> Vec<String> {
    let outcome = facade.create_and_wait(spec(assistant)).await.unwrap().1;
    texts(&outcome)
}

#[tokio::test]
async fn runs_of_one_process_do_not_read_their_thread() {
    as_user(async {
        let (ports, counting) = counted();
        let facade = over(ports);
        for run in 1..=3 {
            let texts = answer(&facade, "finish").await;
            assert_eq!(texts.len(), 2 * run);
            assert_eq!(counting.take_reads(), 0, "run {run}");
            let stored = counting.inner.get(&thread(), None).await.unwrap().unwrap();
            assert_eq!(stored.state.messages().len(), 2 * run);
        }
    })
    .await;
}

#[tokio::test]
async fn retained_state_equals_the_stored_one() {
    as_user(async {
        let (ports, counting) = counted();
        let facade = over(ports);
        for assistant in ["finish", "fail", "finish", "panic", "finish"] {
            let _outcome = facade.create_and_wait(spec(assistant)).await.unwrap();
            let stored = counting.inner.get(&thread(), None).await.unwrap().unwrap();
            let heads = &facade.runtime().registry.heads;
            let head = ThreadHead {
                checkpoint_id: Some(stored.meta.checkpoint_id),
                log_tail: stored.log_tail,
            };
            let Some(retained) = heads.take(&thread(), &head) else {
                continue;
            };
            assert_eq!(*retained.state, stored.state, "{assistant}");
            assert_eq!(retained.state.log_places(), stored.state.log_places());
            assert_eq!(retained.step, stored.meta.step);
            heads.store(&thread(), retained);
        }
    })
    .await;
}

#[tokio::test]
async fn run_after_one_of_another_process_reads_its_messages() {
    as_user(async {
        let (ports, counting) = counted();
        let (first, second) = (over(ports.clone()), over(ports));
        answer(&first, "finish").await;
        answer(&second, "finish").await;
        assert_eq!(counting.take_reads(), 1);
        assert_eq!(answer(&first, "finish").await.len(), 6);
        assert_eq!(counting.take_reads(), 1);
    })
    .await;
}

/// Adds a message to the thread from outside of a run, and returns the new checkpoint.
async fn update_outside_run(ports: &RuntimePorts, counting: &CountingCheckpointer) -> Snapshot {
    let newest = counting.inner.get(&thread(), None).await.unwrap().unwrap();
    let mut after = newest.state.clone();
    let message = Message::human("from outside").with(|body| body.id = Some("m".to_owned()));
    let update = StateUpdate::messages([message]);
    after.apply(update, &SeededIds::new(1)).unwrap();
    let update = ExternalUpdate {
        thread_id: &thread(),
        base: Some(&newest),
        newest: Some(&newest),
        log_tail: newest.log_tail,
        after: &mut after,
        source: CheckpointSource::Update,
        next: vec![],
        machine: None,
    };
    let write = update.planned(&*ports.ids, ports.clock.now());
    let meta = write.write.meta.clone();
    counting.inner.put_outside_run(write).await.unwrap();
    Snapshot {
        meta,
        state: after,
        log_tail: newest.log_tail + 1,
    }
}

#[tokio::test]
async fn run_after_an_external_update_reads_it() {
    as_user(async {
        let (ports, counting) = counted();
        let facade = over(ports.clone());
        answer(&facade, "finish").await;
        update_outside_run(&ports, &counting).await;
        let texts = answer(&facade, "finish").await;
        assert_eq!(texts[2], "from outside");
        assert_eq!(counting.take_reads(), 1);
    })
    .await;
}

#[tokio::test]
async fn run_after_a_retained_update_reads_nothing() {
    as_user(async {
        let (ports, counting) = counted();
        let facade = over(ports.clone());
        answer(&facade, "finish").await;
        let updated = update_outside_run(&ports, &counting).await;
        let stored = counting.inner.get(&thread(), None).await.unwrap().unwrap();
        assert_eq!(updated.log_tail, stored.log_tail);
        assert_eq!(updated.state.log_places(), stored.state.log_places());
        facade.runtime().retain_state(&updated);
        counting.take_reads();
        let texts = answer(&facade, "finish").await;
        assert_eq!((texts[2].as_str(), texts.len()), ("from outside", 5));
        assert_eq!(counting.take_reads(), 0);
        let stored = counting.inner.get(&thread(), None).await.unwrap().unwrap();
        assert_eq!(stored.state.messages().len(), 5);
    })
    .await;
}

#[tokio::test]
async fn run_on_a_deleted_thread_starts_empty() {
    as_user(async {
        let (ports, counting) = counted();
        let facade = over(ports);
        answer(&facade, "finish").await;
        counting.inner.delete_thread(&thread()).await.unwrap();
        assert_eq!(answer(&facade, "finish").await.len(), 2);
        assert_eq!(counting.take_reads(), 0);
    })
    .await;
}

#[tokio::test]
async fn run_after_an_open_question_reads_its_thread() {
    as_user(async {
        let (ports, counting) = counted();
        let facade = over(ports);
        let _question = facade.create_and_wait(spec("ask")).await.unwrap();
        counting.take_reads();
        answer(&facade, "finish").await;
        assert_eq!(counting.take_reads(), 1);
    })
    .await;
}
