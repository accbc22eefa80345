//! Tests of the budget of calls.

use std::collections::VecDeque;

use tokio::time::advance;

use super::*;

fn pacing() -> Pacing {
    Pacing::new(Rates {
        account_per_second: 5,
        chat_interval: SECOND,
        group_per_minute: Some(10),
        counts_signs: true,
    })
}

fn take(pacing: &Pacing, chat: &str, purpose: Purpose) -> Result<Permit, Instant> {
    pacing.take(chat, chat == "g", purpose, Instant::now())
}

fn sign(pacing: &Pacing, chat: &str) -> Option<Permit> {
    pacing.take_sign(chat, Instant::now())
}

/// Counts the most times within a period.
fn most(times: &[Instant], period: Duration) -> usize {
    let within = |from: &Instant| {
        let until = *from + period;
        times
            .iter()
            .filter(|at| (*from..until).contains(at))
            .count()
    };
    times.iter().map(within).max().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn arrivals_never_exceed_the_rates_however_long_calls_take() {
    let pacing = pacing();
    // Calls arrive at any time between their start and their end.
    let (mut account, mut group, mut active) = (Vec::new(), Vec::new(), VecDeque::new());
    for turn in 0..6_000_usize {
        let chat = ["g", "a", "b", "c", "d", "e", "f"][turn % 7];
        if let Ok(permit) = take(&pacing, chat, Purpose::Final) {
            let duration = Duration::from_millis(37 * (turn as u64 % 50));
            active.push_back((Instant::now() + duration, chat, permit));
        }
        advance(Duration::from_millis(50)).await;
        active.retain(|(end, chat, _)| {
            let is_over = *end <= Instant::now();
            if is_over {
                account.push(Instant::now());
                if *chat == "g" {
                    group.push(Instant::now());
                }
            }
            !is_over
        });
    }
    assert_eq!((most(&account, SECOND), most(&group, MINUTE)), (5, 10));
}

#[tokio::test(start_paused = true)]
async fn call_waits_for_the_end_of_another_one_in_its_chat() {
    let pacing = pacing();
    let first = take(&pacing, "a", Purpose::Live).unwrap();
    advance(10 * SECOND).await;
    assert!(take(&pacing, "a", Purpose::Final).is_err());
    drop(first);
    let at = take(&pacing, "a", Purpose::Final).unwrap_err();
    assert_eq!(at, Instant::now() + SECOND);
    advance(SECOND).await;
    let _permit = take(&pacing, "a", Purpose::Final).unwrap();
}

#[tokio::test(start_paused = true)]
async fn live_updates_leave_calls_for_final_texts() {
    let pacing = pacing();
    for _ in 0..4 {
        drop(take(&pacing, "g", Purpose::Live).unwrap());
        advance(SECOND).await;
    }
    assert!(take(&pacing, "g", Purpose::Live).is_err());
    let _permit = take(&pacing, "g", Purpose::Final).unwrap();
}

#[tokio::test(start_paused = true)]
async fn signs_use_half_of_the_rate_and_no_more_than_texts_leave() {
    let pacing = pacing();
    let signs = |chat: &str| (0..9).filter(|_| sign(&pacing, chat).is_some()).count();
    assert_eq!(signs("a"), 2);
    for chat in ["a", "b", "c"] {
        drop(take(&pacing, chat, Purpose::Final).unwrap());
    }
    assert!(take(&pacing, "d", Purpose::Final).is_err());
    assert_eq!(signs("a"), 0);
    advance(SECOND).await;
    for chat in ["b", "c"] {
        drop(take(&pacing, chat, Purpose::Final).unwrap());
    }
    assert_eq!(signs("a"), 0);
    advance(SECOND).await;
    pacing.close_chat("a", Instant::now() + SECOND);
    assert_eq!((signs("a"), signs("b")), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn signs_with_limits_of_their_own_count_for_nothing() {
    let pacing = Pacing::new(Rates {
        counts_signs: false,
        ..pacing().rates
    });
    let signs: Vec<Option<Permit>> = (0..9).map(|_| sign(&pacing, "a")).collect();
    assert!(signs.iter().all(Option::is_some));
    let _permit = take(&pacing, "a", Purpose::Final).unwrap();
}

#[tokio::test(start_paused = true)]
async fn closed_chat_permits_nothing_and_others_continue() {
    let pacing = pacing();
    let until = Instant::now() + Duration::from_secs(33);
    pacing.close_chat("a", until);
    assert_eq!(take(&pacing, "a", Purpose::Final).unwrap_err(), until);
    drop(take(&pacing, "b", Purpose::Final).unwrap());
    pacing.close_account(until);
    assert_eq!(take(&pacing, "b", Purpose::Final).unwrap_err(), until);
    advance(Duration::from_secs(33)).await;
    let _permit = take(&pacing, "a", Purpose::Final).unwrap();
}

#[tokio::test(start_paused = true)]
async fn preparations_count_for_the_account_and_not_for_the_chat() {
    let pacing = pacing();
    let prepare = || pacing.take_preparation(Instant::now());
    let prepared: Vec<Permit> = (0..4).map(|_| prepare().unwrap()).collect();
    drop(take(&pacing, "a", Purpose::Live).unwrap());
    assert!(prepare().is_err());
    drop(prepared);
    advance(SECOND).await;
    assert!(prepare().is_ok());
}
