//! Requirements of lanes that a rate limit closes.

use deerflow_runtime::testkit::at;

use super::{ChannelSuite, bot, claim, other_bot};
use crate::channels::ClosedLane;

fn lane(chat: Option<&str>, n: i64) -> ClosedLane {
    ClosedLane {
        chat: chat.map(str::to_owned),
        until: at(n),
    }
}

/// Of two times of a lane the later one holds. A lane is closed until its time, and then deleted.
pub async fn closed_lane_holds_the_latest_time_and_is_forgotten(
    open: impl AsyncFn() -> ChannelSuite,
) {
    let suite = open().await;
    let (stores, outbox) = (&suite.stores, &suite.stores.outbox);
    let first = claim(stores, &bot()).await;
    let lanes = [
        lane(Some("c1"), 30),
        lane(Some("c1"), 20),
        lane(Some("c2"), 10),
        lane(None, 20),
        lane(None, 40),
    ];
    for lane in &lanes {
        assert_eq!(outbox.close_lane(&first, lane).await, Ok(()));
    }
    let closed = async |n| outbox.closed_lanes(&bot(), at(n)).await.expect("read");
    let (c1, all) = (lane(Some("c1"), 30), lane(None, 40));
    let c2 = lane(Some("c2"), 10);
    assert_eq!(closed(9).await, [all.clone(), c1.clone(), c2]);
    assert_eq!(closed(10).await, [all.clone(), c1]);
    assert_eq!(outbox.closed_lanes(&other_bot(), at(9)).await, Ok(vec![]));
    assert_eq!(outbox.forget(at(35), at(0), 1).await, Ok(1));
    assert_eq!(outbox.forget(at(35), at(0), 9).await, Ok(1));
    assert_eq!(closed(0).await, [all]);
}
