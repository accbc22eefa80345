//! Requirements of used states.

use deerflow_runtime::testkit::at;
use futures_util::future::join_all;

use super::AccountSuite;
use crate::accounts::TokenHash;

/// Of concurrent uses of a state on two nodes one succeeds. Another state is independent.
pub async fn state_is_used_once_on_all_nodes(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let state = TokenHash::of("state");
    let use_state = |n: usize| {
        let (used, state) = (suite.node(n).used_states.clone(), state.clone());
        async move { used.use_state(&state, at(0), at(300)).await }
    };
    let results = join_all((0..20).map(use_state)).await;
    let first = results.iter().filter(|result| **result == Ok(true));
    assert_eq!(first.count(), 1, "{results:?}");
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let other = TokenHash::of("other");
    let used = &suite.other_node.used_states;
    assert_eq!(used.use_state(&other, at(1), at(301)).await, Ok(true));
    assert_eq!(used.use_state(&state, at(299), at(599)).await, Ok(false));
}

/// A use is remembered until its end only.
pub async fn used_state_is_forgotten_after_its_end(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let used = &suite.stores.used_states;
    let state = TokenHash::of("state");
    assert_eq!(used.use_state(&state, at(0), at(300)).await, Ok(true));
    assert_eq!(used.use_state(&state, at(300), at(600)).await, Ok(true));
    assert_eq!(used.use_state(&state, at(301), at(601)).await, Ok(false));
}
