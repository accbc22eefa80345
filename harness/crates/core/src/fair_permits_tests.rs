//! The order in which users receive permits, and that no permit is lost.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use proptest::prelude::*;

use super::*;

type Request<'a> = Pin<Box<dyn Future<Output = FairPermit> + 'a>>;

/// Requests a permit that is not free yet.
fn waiting<'a>(permits: &'a FairPermits, user: &'a str) -> Request<'a> {
    let mut request: Request<'a> = Box::pin(permits.acquire(user));
    assert!((&mut request).now_or_never().is_none(), "{user}");
    request
}

#[test]
fn users_receive_released_permits_in_turns() {
    let permits = FairPermits::new("test", 1);
    let mut held = permits.acquire("a").now_or_never();
    assert!(held.is_some() && permits.is_exhausted());
    let users = ["a", "a", "a", "b", "b", "c"];
    let mut requests: Vec<_> = users.map(|user| (user, waiting(&permits, user))).into();
    let mut order = Vec::new();
    while !requests.is_empty() {
        drop(held.take());
        let granted = requests
            .iter_mut()
            .enumerate()
            .find_map(|(at, (_, request))| {
                let permit = request.now_or_never()?;
                Some((at, permit))
            });
        let (at, permit) = granted.expect("a permit");
        order.push(requests.remove(at).0);
        held = Some(permit);
    }
    assert_eq!(order, ["a", "b", "c", "a", "b", "a"]);
    drop(held);
    assert!(!permits.is_exhausted());
}

#[test]
fn withdrawn_request_passes_its_turn_on() {
    let permits = FairPermits::new("test", 1);
    let held = permits.acquire("a").now_or_never();
    let first = waiting(&permits, "b");
    let mut second = waiting(&permits, "c");
    drop(first);
    drop(held);
    assert!((&mut second).now_or_never().is_some());
    assert!(!permits.is_exhausted());
}

#[test]
fn granted_permit_of_dropped_request_is_released() {
    let permits = FairPermits::new("test", 1);
    let held = permits.acquire("a").now_or_never();
    let request = waiting(&permits, "b");
    drop(held);
    assert!(permits.is_exhausted(), "the permit is granted");
    drop(request);
    assert!(!permits.is_exhausted());
}

#[test]
fn repeatedly_withdrawn_requests_are_removed() {
    let permits = FairPermits::new("test", 1);
    let _held = permits.acquire("a").now_or_never();
    for _ in 0..100 {
        drop(waiting(&permits, "b"));
    }
    assert!(permits.queue.lock().waiting["b"].requests.len() <= 2);
}

#[test]
fn user_at_its_own_limit_waits_while_permits_are_free() {
    let permits = FairPermits::limited_per_user("test", 2, 1);
    let first = permits.acquire("a").now_or_never();
    let mut second = waiting(&permits, "a");
    assert!(!permits.is_exhausted());
    let of_another = permits.acquire("b").now_or_never();
    assert!(of_another.is_some());
    let mut third = waiting(&permits, "c");
    drop(of_another);
    assert!((&mut second).now_or_never().is_none(), "a holds one");
    let third = (&mut third).now_or_never();
    assert!(third.is_some());
    drop(first);
    assert!((&mut second).now_or_never().is_some());
}

proptest! {
    /// At every time as many permits are held or free as there are, and at the end all are free.
    #[test]
    fn no_permit_is_lost_or_doubled(
        count in 1_usize..4,
        steps in prop::collection::vec((0_usize..3, 0_usize..4, 0_usize..8), 0..80),
    ) {
        let users = ["a", "b", "c", "d"];
        let permits = FairPermits::new("test", count);
        let mut cx = Context::from_waker(Waker::noop());
        let mut requests: Vec<Request<'_>> = Vec::new();
        let mut held = Vec::new();
        for (step, user, at) in steps {
            match step {
                0 => requests.push(Box::pin(permits.acquire(users[user]))),
                1 if at < held.len() => drop(held.swap_remove(at)),
                2 if at < requests.len() => drop(requests.swap_remove(at)),
                _ => {}
            }
            let mut pending = Vec::new();
            for mut request in requests {
                match pin!(&mut request).poll(&mut cx) {
                    Poll::Ready(permit) => held.push(permit),
                    Poll::Pending => pending.push(request),
                }
            }
            requests = pending;
            prop_assert_eq!(held.len() + permits.queue.lock().free, count);
            prop_assert!(requests.is_empty() || held.len() == count);
        }
        drop(requests);
        held.clear();
        prop_assert_eq!(permits.queue.lock().free, count);
    }
}
