//! Tests of the budget of calls.

use super::*;

fn pacing() -> Pacing {
    Pacing::new(Rates {
        account_per_second: 5,
        chat_interval: SECOND,
        group_per_minute: Some(10),
        counts_signs: true,
    })
}

#[tokio::test(start_paused = true)]
async fn calls_never_exceed_the_rates() {
    let pacing = pacing();
    let (mut now, mut account, mut group) = (Instant::now(), Vec::new(), Vec::new());
    let end = now + Duration::from_secs(300);
    let mut turn = 0_usize;
    while now < end {
        let chat = ["g", "a", "b", "c", "d", "e", "f"][turn % 7];
        turn += 1;
        match pacing.take(chat, chat == "g", Purpose::Final, now) {
            Ok(()) => {
                account.push(now);
                if chat == "g" {
                    group.push(now);
                }
            }
            Err(at) => {
                assert!(at > now);
                now += Duration::from_millis(50);
            }
        }
    }
    let within = |calls: &[Instant], period: Duration| {
        calls
            .iter()
            .map(|from| {
                calls
                    .iter()
                    .filter(|at| **at >= *from && **at < *from + period)
                    .count()
            })
            .max()
    };
    assert_eq!(within(&account, SECOND), Some(5));
    assert_eq!(within(&group, MINUTE), Some(10));
}

#[tokio::test(start_paused = true)]
async fn live_updates_leave_calls_for_final_texts() {
    let pacing = pacing();
    let mut now = Instant::now();
    for _ in 0..4 {
        assert_eq!(pacing.take("g", true, Purpose::Live, now), Ok(()));
        now += SECOND;
    }
    assert!(pacing.take("g", true, Purpose::Live, now).is_err());
    assert_eq!(pacing.take("g", true, Purpose::Final, now), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn signs_use_half_of_the_rate_and_no_more_than_texts_leave() {
    let pacing = pacing();
    let now = Instant::now();
    let signs = |chat: &str, now| (0..9).filter(|_| pacing.take_sign(chat, now)).count();
    assert_eq!(signs("a", now), 2);
    for chat in ["a", "b", "c"] {
        assert_eq!(pacing.take(chat, false, Purpose::Final, now), Ok(()));
    }
    assert!(pacing.take("d", false, Purpose::Final, now).is_err());
    assert_eq!(signs("a", now), 0);
    let later = now + SECOND;
    for chat in ["b", "c"] {
        assert_eq!(pacing.take(chat, false, Purpose::Final, later), Ok(()));
    }
    assert_eq!(signs("a", later), 0);
    let closed = later + SECOND;
    pacing.close_chat("a", closed + SECOND);
    assert_eq!((signs("a", closed), signs("b", closed)), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn signs_with_limits_of_their_own_count_for_nothing() {
    let pacing = Pacing::new(Rates {
        counts_signs: false,
        ..pacing().rates
    });
    let now = Instant::now();
    assert!((0..9).all(|_| pacing.take_sign("a", now)));
    assert_eq!(pacing.take("a", false, Purpose::Final, now), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn closed_chat_permits_nothing_and_others_continue() {
    let pacing = pacing();
    let now = Instant::now();
    let until = now + Duration::from_secs(33);
    pacing.close_chat("a", until);
    assert_eq!(pacing.take("a", false, Purpose::Final, now), Err(until));
    assert_eq!(pacing.take("b", false, Purpose::Final, now), Ok(()));
    pacing.close_account(until);
    assert_eq!(pacing.take("b", false, Purpose::Final, now), Err(until));
    assert_eq!(pacing.take("a", false, Purpose::Final, until), Ok(()));
}
