//! Promises of sending.

use std::time::Duration;

use super::session::{answer, asked, deliver, delivery, live, plain, while_listening};
use super::{PlatformBench, SendFault};
use crate::markup;
use crate::platform::PlatformError;
use crate::testkit::RecordingSink;

/// A text above the limit arrives complete, in parts of which none is above the limit.
pub async fn long_text_arrives_complete<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    let platform = bench.adapter();
    let abilities = platform.abilities().clone();
    let words: Vec<String> = (0..abilities.text.max / 3)
        .map(|word| format!("w{word}"))
        .collect();
    let parts = markup::parts(&words.join(" "), abilities.dialect, abilities.text);
    assert!(parts.len() > 1);
    while_listening(&*platform, &sink, async {
        let event = asked(&bench, &sink).await;
        for (number, part) in (0_u128..).zip(&parts) {
            let message = answer(&event, part.clone());
            deliver(&*platform, &message, &mut delivery(number)).await;
        }
    })
    .await;
    let shown = bench.shown();
    assert_eq!(shown.len(), parts.len());
    for text in &shown {
        assert!(abilities.text.unit.length(text) <= abilities.text.max);
    }
    let arrived: Vec<&str> = shown
        .iter()
        .flat_map(|text| text.split_whitespace())
        .collect();
    assert_eq!(arrived, words);
}

/// A delivery whose reply was lost is shown once where the platform has idempotency keys, and at
/// most once more per lost reply elsewhere.
pub async fn repeated_delivery_is_shown_once<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    let platform = bench.adapter();
    while_listening(&*platform, &sink, async {
        let event = asked(&bench, &sink).await;
        let (message, mut delivery) = (answer(&event, plain("once")), delivery(1));
        bench.fail_next(SendFault::LostReply);
        let lost = platform.send(&message, None, &mut delivery).await;
        assert!(
            matches!(lost, Err(PlatformError::Unavailable(_))),
            "{lost:?}"
        );
        delivery.attempt += 1;
        deliver(&*platform, &message, &mut delivery).await;
    })
    .await;
    let shown = bench.shown();
    if bench.has_idempotency_keys() {
        assert_eq!(shown, ["once"]);
    } else {
        assert_eq!(shown, ["once", "once"]);
    }
}

/// Each update of an answer in progress replaces the former text, and the final text the last one.
pub async fn final_text_replaces_the_live_message<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    let platform = bench.adapter();
    while_listening(&*platform, &sink, async {
        let event = asked(&bench, &sink).await;
        let mut reply = live(&event);
        if platform.abilities().live.is_some() {
            for text in ["One", "One two"] {
                platform
                    .update_live(&mut reply, text)
                    .await
                    .expect("the update is shown");
                assert!(bench.shown().len() <= 1, "{:?}", bench.shown());
            }
        }
        let mut message = answer(&event, plain("One two three"));
        message.live = reply.state;
        deliver(&*platform, &message, &mut delivery(1)).await;
    })
    .await;
    assert_eq!(bench.shown(), ["One two three"]);
}

/// A rate limit is reported with the delay that the platform names. The message is sent afterwards.
pub async fn rate_limit_has_its_exact_delay<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    let platform = bench.adapter();
    while_listening(&*platform, &sink, async {
        let event = asked(&bench, &sink).await;
        let (message, mut delivery) = (answer(&event, plain("late")), delivery(1));
        let expected = bench.fail_next(SendFault::RateLimited(Duration::from_secs(33)));
        let limited = platform.send(&message, None, &mut delivery).await;
        let Err(PlatformError::RateLimited { retry_after, .. }) = limited else {
            panic!("{limited:?}");
        };
        assert_eq!(retry_after, expected);
    })
    .await;
    assert!(bench.shown().is_empty());
}

/// A failure of the platform is reported as one that may pass, and the next attempt succeeds.
pub async fn failure_of_the_platform_is_retryable<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    let platform = bench.adapter();
    while_listening(&*platform, &sink, async {
        let event = asked(&bench, &sink).await;
        let (message, mut delivery) = (answer(&event, plain("at last")), delivery(1));
        bench.fail_next(SendFault::Failed);
        let failed = platform.send(&message, None, &mut delivery).await;
        assert!(
            matches!(failed, Err(PlatformError::Unavailable(_))),
            "{failed:?}"
        );
        delivery.attempt += 1;
        deliver(&*platform, &message, &mut delivery).await;
    })
    .await;
    assert_eq!(bench.shown(), ["at last"]);
}
