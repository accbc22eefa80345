//! The proportions in which users of different weights receive permits.

use std::collections::VecDeque;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt;
use proptest::prelude::*;

use super::*;

const USERS: [&str; 4] = ["a", "b", "c", "d"];

type Request<'a> = Pin<Box<dyn Future<Output = FairPermit> + 'a>>;

fn weights(of_users: &[(&str, u32)]) -> Arc<TurnWeights> {
    let weights = Arc::new(TurnWeights::default());
    set(&weights, of_users);
    weights
}

fn set(weights: &TurnWeights, of_users: &[(&str, u32)]) {
    let of_users = of_users
        .iter()
        .map(|(user, weight)| ((*user).to_owned(), NonZeroU32::new(*weight).unwrap()));
    weights.set(NonZeroU32::MIN, of_users.collect());
}

/// Requests of users that wait for the only permit.
struct Line<'a> {
    permits: &'a FairPermits,
    held: Option<FairPermit>,
    requests: Vec<(&'a str, VecDeque<Request<'a>>)>,
}

impl<'a> Line<'a> {
    fn new(permits: &'a FairPermits) -> Self {
        Self {
            permits,
            held: permits.acquire("holder").now_or_never(),
            requests: Vec::new(),
        }
    }

    fn wait(&mut self, user: &'a str, count: usize) {
        for _ in 0..count {
            let mut request: Request<'a> = Box::pin(self.permits.acquire(user));
            assert!((&mut request).now_or_never().is_none());
            self.of(user).push_back(request);
        }
    }

    fn of(&mut self, user: &'a str) -> &mut VecDeque<Request<'a>> {
        let at = self.requests.iter().position(|(of, _)| *of == user);
        let at = at.unwrap_or_else(|| {
            self.requests.push((user, VecDeque::new()));
            self.requests.len() - 1
        });
        &mut self.requests[at].1
    }

    /// Releases the permit and returns the user who receives it.
    fn grant(&mut self) -> Option<&'a str> {
        drop(self.held.take());
        for (user, requests) in &mut self.requests {
            if let Some(permit) = requests.front_mut().and_then(FutureExt::now_or_never) {
                requests.pop_front();
                self.held = Some(permit);
                return Some(user);
            }
        }
        None
    }

    fn order(&mut self, grants: usize) -> String {
        (0..grants).filter_map(|_| self.grant()).collect()
    }
}

#[test]
fn waiting_users_receive_permits_by_weight() {
    let permits = FairPermits::new("test", 1).with_weights(weights(&[("a", 3), ("b", 2)]));
    let mut line = Line::new(&permits);
    for user in ["a", "b", "c"] {
        line.wait(user, 6);
    }
    assert_eq!(line.order(18), "aaabbcaaabbcbbcccc");
    assert_eq!(line.order(1), "");
    assert!(!permits.is_exhausted());
}

#[test]
fn weights_of_process_apply_by_default() {
    let user = "weights_of_process_apply_by_default";
    set(&TurnWeights::of_process(), &[(user, 2)]);
    let permits = FairPermits::new("test", 1);
    let mut line = Line::new(&permits);
    line.wait(user, 3);
    line.wait("-", 2);
    assert_eq!(line.order(5), format!("{user}{user}-{user}-"));
}

#[test]
fn changed_weight_applies_in_next_round() {
    let weights = weights(&[("a", 3)]);
    let permits = FairPermits::new("test", 1).with_weights(weights.clone());
    let mut line = Line::new(&permits);
    line.wait("a", 6);
    line.wait("b", 6);
    assert_eq!(line.order(1), "a");
    set(&weights, &[("b", 2)]);
    assert_eq!(line.order(7), "aabbabb");
}

#[test]
fn withdrawn_requests_consume_no_turn() {
    let permits = FairPermits::new("test", 1).with_weights(weights(&[("a", 2)]));
    let mut line = Line::new(&permits);
    line.wait("a", 5);
    line.wait("b", 2);
    line.of("a").drain(..2);
    assert_eq!(line.order(5), "aabab");
    line.wait("a", 1);
    line.wait("b", 2);
    line.of("a").clear();
    assert_eq!(line.order(3), "bb");
}

#[test]
fn request_withdrawn_during_its_grant_consumes_no_turn() {
    let permits = FairPermits::new("test", 1).with_weights(weights(&[("a", 2)]));
    let mut line = Line::new(&permits);
    line.wait("a", 4);
    line.wait("b", 1);
    {
        // As in a release, with a withdrawal between the choice of the request and its grant.
        let mut queue = permits.queue.lock();
        let (user, _request) = queue.release_and_next("holder").expect("a request");
        assert_eq!((user.as_str(), queue.free), ("a", 0));
        line.requests[0].1.pop_front();
        let (user, request) = queue.undo_and_next(&user).expect("a request");
        assert_eq!((user.as_str(), queue.free), ("a", 0));
        drop(queue);
        let permit = FairPermit::of(&permits.queue, &user);
        assert!(request.send(permit).is_ok());
        line.held.take().expect("a permit").queue = None;
    }
    let first = line.of("a").pop_front().and_then(FutureExt::now_or_never);
    line.held = first;
    assert_eq!(
        line.order(3),
        "aba",
        "the first was the permit of this round"
    );
}

#[test]
fn user_at_its_limit_receives_missed_turn_first() {
    let permits = FairPermits::limited_per_user("test", 2, 1);
    let mut of_a = permits.acquire("a").now_or_never();
    let of_d = permits.acquire("d").now_or_never();
    let mut requests = ["a", "b", "c"].map(|user| {
        let mut request: Request<'_> = Box::pin(permits.acquire(user));
        assert!((&mut request).now_or_never().is_none());
        request
    });
    drop(of_d);
    let [a, b, c] = &mut requests;
    assert!(a.now_or_never().is_none() && c.now_or_never().is_none());
    let _of_b = b.now_or_never().expect("a permit");
    drop(of_a.take());
    let _of_a = a.now_or_never().expect("a permit");
    assert!(c.now_or_never().is_none());
}

proptest! {
    /// While all users wait, each round gives each of them exactly its weight, in any order of
    /// arrival and with withdrawals in between. No user waits longer than one round of the others.
    #[test]
    fn rounds_are_proportional_to_weights(
        of_users in prop::collection::vec(1_u32..8, USERS.len()),
        withdrawn in prop::collection::vec(0..USERS.len(), 0..40),
        rounds in 1_usize..6,
    ) {
        let of_users: Vec<_> = USERS.into_iter().zip(of_users).collect();
        let permits = FairPermits::new("test", 1).with_weights(weights(&of_users));
        let mut line = Line::new(&permits);
        let round: u32 = of_users.iter().map(|(_, weight)| weight).sum();
        for user in USERS {
            line.wait(user, 100);
        }
        let mut withdrawn = withdrawn.into_iter();
        for _ in 0..rounds {
            let mut counts = [0_u32; USERS.len()];
            for _ in 0..round {
                if let Some(user) = withdrawn.next() {
                    line.of(USERS[user]).pop_front();
                }
                let user = line.grant().expect("a permit");
                counts[USERS.iter().position(|of| *of == user).unwrap()] += 1;
            }
            for ((user, weight), count) in of_users.iter().zip(counts) {
                prop_assert_eq!(count, *weight, "{}", user);
            }
        }
    }
}
