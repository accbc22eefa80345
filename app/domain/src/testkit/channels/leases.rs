//! Requirements of leases, and of the writes that they fence.

use deerflow_runtime::testkit::{at, at_once};
use serde_json::json;

use super::conversations::conversation;
use super::{
    ChannelSuite, LEASE, accept, batch, bot, claim, message, other_bot, outgoing, waiting,
};
use crate::channels::{
    AccountClaim, ChannelStoreError, ClosedLane, InboxEnd, InboxLimits, InboxState, LeaseRecord,
};

/// Of nodes that acquire a free account at once, one gets it.
pub async fn account_is_acquired_by_one_of_many(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    assert_eq!(suite.stores.leases.lease(&bot()).await, Ok(None));
    let claims = at_once((0..8).map(|n| {
        let leases = suite.stores.leases.clone();
        async move {
            leases
                .acquire(&bot(), &format!("n{n}"), LEASE, at(0))
                .await
                .expect("written")
        }
    }))
    .await;
    let claims: Vec<AccountClaim> = claims.into_iter().flatten().collect();
    let [only] = &claims[..] else {
        panic!("{claims:?}")
    };
    assert_eq!(only.epoch, 1);
    let stored = LeaseRecord {
        claim: only.clone(),
        since: at(0),
        expires_at: at(0) + LEASE,
    };
    assert_eq!(suite.stores.leases.lease(&bot()).await, Ok(Some(stored)));
    // Another account is free.
    let other = suite
        .stores
        .leases
        .acquire(&other_bot(), "n9", LEASE, at(0))
        .await;
    assert_eq!(other.map(|claim| claim.is_some()), Ok(true));
}

/// An account is free from the end of its lease on, or from its release on.
pub async fn lease_expires_and_is_released(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let leases = &suite.stores.leases;
    let first = claim(&suite.stores, &bot()).await;
    assert_eq!(leases.acquire(&bot(), "n2", LEASE, at(14)).await, Ok(None));
    assert_eq!(leases.renew(&first, LEASE, at(14)).await, Ok(()));
    assert_eq!(leases.acquire(&bot(), "n2", LEASE, at(28)).await, Ok(None));
    let second = leases
        .acquire(&bot(), "n2", LEASE, at(29))
        .await
        .expect("written")
        .expect("expired");
    assert_eq!((second.epoch, second.node.as_str()), (2, "n2"));
    // The release of an older claim has no effect.
    assert_eq!(leases.release(&first, at(30)).await, Ok(()));
    assert_eq!(leases.acquire(&bot(), "n1", LEASE, at(30)).await, Ok(None));
    assert_eq!(leases.release(&second, at(31)).await, Ok(()));
    let third = leases.acquire(&bot(), "n1", LEASE, at(31)).await;
    assert_eq!(
        third.map(|claim| claim.map(|claim| claim.epoch)),
        Ok(Some(3))
    );
}

/// A lease from a time when the clock was a day ahead holds no node up.
pub async fn lease_of_wrong_clock_is_acquired(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let leases = &suite.stores.leases;
    let day = 86_400;
    let ahead = leases.acquire(&bot(), "n1", LEASE, at(day)).await;
    assert_eq!(ahead.map(|claim| claim.is_some()), Ok(true));
    let acquired = leases.acquire(&bot(), "n2", LEASE, at(0)).await;
    assert_eq!(
        acquired.map(|claim| claim.map(|claim| claim.epoch)),
        Ok(Some(2))
    );
}

/// The earlier claim of the node becomes invalid.
pub async fn same_node_gets_new_epoch(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let first = claim(&suite.stores, &bot()).await;
    let second = claim(&suite.stores, &bot()).await;
    assert_eq!((first.epoch, second.epoch), (1, 2));
    let leases = &suite.stores.leases;
    assert_eq!(
        leases.renew(&first, LEASE, at(1)).await,
        Err(ChannelStoreError::Fenced)
    );
    assert_eq!(leases.renew(&second, LEASE, at(1)).await, Ok(()));
}

/// An expired lease is renewed until another node acquires the account.
pub async fn stale_lease_is_not_renewed(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let leases = &suite.stores.leases;
    let first = claim(&suite.stores, &bot()).await;
    assert_eq!(leases.renew(&first, LEASE, at(100)).await, Ok(()));
    assert_eq!(leases.acquire(&bot(), "n2", LEASE, at(101)).await, Ok(None));
    let second = leases.acquire(&bot(), "n2", LEASE, at(200)).await;
    assert_eq!(second.map(|claim| claim.is_some()), Ok(true));
    for account in [bot(), other_bot()] {
        let stale = AccountClaim {
            account,
            ..first.clone()
        };
        assert_eq!(
            leases.renew(&stale, LEASE, at(201)).await,
            Err(ChannelStoreError::Fenced)
        );
    }
}

/// A revoked claim is invalid at once, and no node can acquire the account before a later time.
pub async fn revoked_claim_is_invalid_at_once(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let leases = &suite.stores.leases;
    assert_eq!(leases.all().await, Ok(Vec::new()));
    assert_eq!(leases.revoke(&bot(), at(1)).await, Ok(false));
    let first = claim(&suite.stores, &bot()).await;
    let other = claim(&suite.stores, &other_bot()).await;
    assert_eq!(leases.revoke(&bot(), at(5)).await, Ok(true));
    let fenced = Err(ChannelStoreError::Fenced);
    assert_eq!(leases.renew(&first, LEASE, at(2)).await, fenced);
    let message = outgoing(1, "c1", json!({}));
    let written = suite.stores.outbox.enqueue(&first, vec![message], at(2));
    assert_eq!(written.await, fenced);
    assert_eq!(leases.renew(&other, LEASE, at(0)).await, Ok(()));
    let revoked = LeaseRecord {
        claim: AccountClaim {
            epoch: 2,
            node: String::new(),
            ..first
        },
        since: at(0),
        expires_at: at(5),
    };
    let untouched = LeaseRecord {
        claim: other,
        since: at(0),
        expires_at: at(0) + LEASE,
    };
    assert_eq!(leases.all().await, Ok(vec![untouched, revoked]));
    for node in ["n1", "n2"] {
        assert_eq!(leases.acquire(&bot(), node, LEASE, at(4)).await, Ok(None));
    }
    let epoch = |acquired: Option<AccountClaim>| acquired.map(|claim| claim.epoch);
    let acquired = leases.acquire(&bot(), "n1", LEASE, at(5)).await;
    assert_eq!(acquired.map(epoch), Ok(Some(3)));
    // A revocation does not extend a lease.
    assert_eq!(leases.revoke(&bot(), at(100)).await, Ok(true));
    let acquired = leases.acquire(&bot(), "n2", LEASE, at(5) + LEASE).await;
    assert_eq!(acquired.map(epoch), Ok(Some(5)));
}

/// Every write of an older claim, and of one for another account, is refused and changes nothing.
pub async fn newer_claim_fences_every_write(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    let stale = claim(stores, &bot()).await;
    accept(stores, &stale, vec![message("m1", "k1")]).await;
    let stored = outgoing(1, "c1", json!({}));
    stores
        .outbox
        .enqueue(&stale, vec![stored], at(1))
        .await
        .expect("written");
    stores
        .conversations
        .create(&stale, conversation("k1"))
        .await
        .expect("written");
    let newest = claim(stores, &bot()).await;
    let foreign = claim(stores, &other_bot()).await;
    for refused in [&stale, &foreign] {
        check_writes_with_accounts(&suite, refused).await;
    }
    check_writes_by_id(&suite, &stale).await;
    // A claim for another account changes no rows of this one.
    let id = waiting(stores, "k1").await[0].id;
    assert_eq!(stores.inbox.begin(&foreign, &[id]).await, Ok(()));
    let outgoing_id = uuid::Uuid::from_u128(1);
    assert_eq!(
        stores
            .outbox
            .sent(&foreign, outgoing_id, vec![], at(2))
            .await,
        Ok(())
    );
    let rows = waiting(stores, "k1").await;
    assert_eq!((rows.len(), rows[0].claims), (1, 0));
    assert_eq!(stores.inbox.cursor(&bot()).await, Ok(None));
    assert_eq!(stores.outbox.depth(&bot()).await, Ok(1));
    let unchanged = stores.conversations.find(&bot(), "k1").await;
    assert_eq!(unchanged, Ok(Some(conversation("k1"))));
    // The newest claim writes.
    let accepted = accept(stores, &newest, vec![message("m2", "k1")]).await;
    assert_eq!(accepted.len(), 1);
}

/// Checks writes whose rows name their account.
async fn check_writes_with_accounts(suite: &ChannelSuite, refused: &AccountClaim) {
    let fenced = || Err(ChannelStoreError::Fenced);
    let (stores, limits) = (&suite.stores, InboxLimits::default());
    let mut new = batch(vec![message("m2", "k1")]);
    new.cursor = Some("9".to_owned());
    let accepted = stores.inbox.accept(refused, new, limits, at(2)).await;
    assert_eq!(accepted.map(drop), fenced());
    let reply = || vec![outgoing(2, "c1", json!({}))];
    let end = InboxEnd {
        state: InboxState::Answered,
        note: None,
    };
    let id = waiting(stores, "k1").await[0].id;
    assert_eq!(
        stores.inbox.end(refused, &[id], end, reply(), at(2)).await,
        fenced()
    );
    assert_eq!(
        stores.outbox.enqueue(refused, reply(), at(2)).await,
        fenced()
    );
    let created = stores
        .conversations
        .create(refused, conversation("k2"))
        .await;
    assert_eq!(created.map(drop), fenced());
    let mut changed = conversation("k1");
    changed.user_id = "bob".to_owned();
    assert_eq!(
        stores.conversations.update(refused, &changed, at(2)).await,
        fenced()
    );
}

/// Checks writes that name ids only.
async fn check_writes_by_id(suite: &ChannelSuite, stale: &AccountClaim) {
    let fenced = || Err(ChannelStoreError::Fenced);
    let (inbox, outbox) = (&suite.stores.inbox, &suite.stores.outbox);
    let id = waiting(&suite.stores, "k1").await[0].id;
    assert_eq!(inbox.begin(stale, &[id]).await, fenced());
    assert_eq!(inbox.save_progress(stale, id, json!(1)).await, fenced());
    assert_eq!(inbox.fail(stale, &[id], "x", at(3), at(2)).await, fenced());
    let id = uuid::Uuid::from_u128(1);
    assert_eq!(outbox.begin(stale, id).await, fenced());
    assert_eq!(outbox.save_progress(stale, id, json!(1)).await, fenced());
    assert_eq!(outbox.retry(stale, id, "x", at(3), true).await, fenced());
    assert_eq!(
        outbox.sent(stale, id, vec!["p1".to_owned()], at(2)).await,
        fenced()
    );
    assert_eq!(outbox.bury(stale, id, "x", at(2)).await, fenced());
    assert_eq!(outbox.link(stale, "c1", "p1", "k1", at(2)).await, fenced());
    assert_eq!(outbox.conversation_of(&bot(), "c1", "p1").await, Ok(None));
    let lane = ClosedLane {
        chat: None,
        until: at(9),
    };
    assert_eq!(outbox.close_lane(stale, &lane).await, fenced());
    let conversations = &suite.stores.conversations;
    assert_eq!(
        conversations.rename_chat(stale, "c1", "c2", at(2)).await,
        fenced()
    );
}
