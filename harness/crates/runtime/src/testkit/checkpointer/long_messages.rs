//! Contract of messages and events with long texts.

use super::{RunStores, ThreadScript, all, text_update};
use crate::runs::store::{NewRunEvent, RunCommit};
use crate::testkit::{
    all_events, checkpoint_write, commit_of, event, message, new_run, run, thread,
};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::SeededIds;
use deerflow_core::messages::Message;
use deerflow_core::state::{StateUpdate, ThreadState};

fn long(times: usize) -> String {
    "a \"long\" text \u{e9}\n".repeat(times)
}

/// Texts of 100 KB and of 1.2 MB between short ones.
fn messages() -> [Message; 4] {
    let texts = ["short", &long(5_000), "short", &long(60_000)];
    let numbered = texts.iter().enumerate();
    let messages = numbered.map(|(number, text)| message(&format!("m{number}"), text));
    messages.collect::<Vec<_>>().try_into().expect("four")
}

/// Long messages are in the newest state, in the history and in a copy of the thread.
pub async fn long_messages_are_read_back(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    script.step(None, StateUpdate::messages(messages())).await;
    script.step(None, text_update("m9")).await;
    let (from, to) = (thread("t1"), thread("t2"));
    let copied = stores.checkpoints.copy_thread(&from, &to).await;
    copied.expect("copied");
    for on in [from, to] {
        let newest = stores.checkpoints.get(&on, None).await;
        let newest = newest.expect("read").expect("there").state;
        assert!(newest == script.state, "the newest state differs");
        let history = stores.checkpoints.list(&on, &all()).await.expect("read");
        assert!(history[0].state == script.state, "the history differs");
        let lengths = history.iter().map(|read| read.state.messages().len());
        assert_eq!(lengths.collect::<Vec<_>>(), [5, 4]);
    }
}

/// Long messages and events of a run's commit are read back.
pub async fn long_texts_of_a_commit_are_read_back(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let admitted = stores.create.admit(new_run("r1", "t1")).await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let update = StateUpdate::messages(messages());
    state.apply(update, &SeededIds::new(1)).expect("applied");
    let texts = messages().map(|message| message.content.text());
    let events: Vec<NewRunEvent> = texts.iter().map(|text| event("t1", "r1", text)).collect();
    let commit = RunCommit {
        events: events.clone(),
        checkpoints: vec![checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail)],
        ..commit_of(&admitted.expect("admitted").run)
    };
    stores
        .commit
        .commit(commit.into())
        .await
        .expect("committed");
    let read = stores.checkpoints.get(&thread("t1"), None).await;
    assert!(
        read.expect("read").expect("there").state == state,
        "the state differs"
    );
    let read = read_events(&stores).await;
    assert!(read == events, "the events differ");
    let deleted = stores.events.delete_run(&thread("t1"), &run("r1")).await;
    deleted.expect("deleted");
    assert_eq!(read_events(&stores).await, []);
}

async fn read_events(stores: &RunStores) -> Vec<NewRunEvent> {
    let (on, query) = (thread("t1"), all_events());
    let read = stores.events.list(&on, &query, &Owner::None).await;
    let read = read.expect("read").into_iter();
    read.map(|read| read.event).collect()
}
