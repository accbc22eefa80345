//! Histories in checkpoints: message lists apart from the conversation.

use deerflow_core::messages::Message;
use deerflow_core::state::StateUpdate;

use super::{RunStores, ThreadScript, ids, text_update};
use crate::testkit::{checkpoint, thread};

/// A checkpoint has the histories of its moment. They are no messages of the conversation, and a
/// copy of the thread has them, too.
pub async fn histories_are_read_back_as_of_their_checkpoint(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    let mut states = Vec::new();
    for (id, agent) in [("m1", "a"), ("m2", "b"), ("m3", "a"), ("m4", "a")] {
        let turn = ["asked", "answered"].map(|text| Message::human(format!("{id} {text}")));
        script.state.histories_mut().push(agent, turn, 3);
        script.step(None, text_update(id)).await;
        states.push(script.state.clone());
    }
    script.state.histories_mut().clear();
    script.step(None, StateUpdate::default()).await;
    states.push(script.state.clone());
    let (from, to) = (thread("t1"), thread("t2"));
    let copied = stores.checkpoints.copy_thread(&from, &to).await;
    copied.expect("copied");
    for on in [from, to] {
        for (number, state) in (1..).zip(&states) {
            let id = checkpoint(number);
            let read = stores.checkpoints.get(&on, Some(&id)).await;
            let read = read.expect("read").expect("there");
            assert_eq!(read.state, *state, "checkpoint {number}");
            assert_eq!(ids(&read.state), ids(state));
            let places: Vec<_> = read.state.histories().log_places().collect();
            assert_eq!(places, state.histories().log_places().collect::<Vec<_>>());
        }
    }
}
