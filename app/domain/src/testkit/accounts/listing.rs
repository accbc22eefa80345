//! Requirements of the list of accounts.

use deerflow_runtime::testkit::at;

use super::{AccountSuite, create, new_account};
use crate::accounts::{AccountQuery, NewAccount, Role};

/// Selects by a part of the e-mail or by the id; `%` and `_` are plain characters.
pub async fn accounts_are_listed_by_text_with_total(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    for (n, id) in [(2, "ann"), (1, "a_n"), (3, "Bob-1"), (4, "cid")] {
        let new = NewAccount {
            at: at(n),
            ..new_account(id, Role::User)
        };
        create(&stores, new).await;
    }
    let list = async |q: Option<&str>, limit, offset| {
        let query = AccountQuery {
            q: q.map(str::to_owned),
            limit,
            offset,
            ..AccountQuery::default()
        };
        let page = stores.accounts.list(&query).await.expect("read");
        let ids: Vec<String> = page
            .accounts
            .into_iter()
            .map(|account| account.id)
            .collect();
        (ids.join(" "), page.total)
    };
    assert_eq!(list(None, 9, 0).await, ("a_n ann Bob-1 cid".to_owned(), 4));
    assert_eq!(list(None, 2, 1).await, ("ann Bob-1".to_owned(), 4));
    assert_eq!(list(None, 2, 9).await, (String::new(), 4));
    assert_eq!(list(Some("A_N"), 9, 0).await, ("a_n".to_owned(), 1));
    assert_eq!(list(Some("%"), 9, 0).await, (String::new(), 0));
    assert_eq!(list(Some("bob-1"), 9, 0).await, ("Bob-1".to_owned(), 1));
    assert_eq!(list(Some("@EXAMPLE"), 1, 0).await, ("a_n".to_owned(), 4));
}

/// Selects by the role, also together with a text.
pub async fn accounts_are_listed_by_role(open: impl AsyncFn() -> AccountSuite) {
    let suite = open().await;
    let stores = suite.stores.clone();
    for (n, id, role) in [
        (1, "ann", Role::User),
        (2, "bob", Role::Admin),
        (3, "cid", Role::Admin),
    ] {
        let new = NewAccount {
            at: at(n),
            ..new_account(id, role)
        };
        create(&stores, new).await;
    }
    let list = async |q: Option<&str>, role| {
        let query = AccountQuery {
            q: q.map(str::to_owned),
            role,
            limit: 9,
            offset: 0,
        };
        let page = stores.accounts.list(&query).await.expect("read");
        let emails = page.accounts.iter().map(|account| account.email.as_str());
        (emails.collect::<Vec<_>>().join(" "), page.total)
    };
    let email = |id: &str| new_account(id, Role::User).email.as_str().to_owned();
    let (ann, bob, cid) = (email("ann"), email("bob"), email("cid"));
    assert_eq!(list(None, Some(Role::User)).await, (ann.clone(), 1));
    let both = format!("{bob} {cid}");
    assert_eq!(list(None, Some(Role::Admin)).await, (both, 2));
    assert_eq!(list(Some("cid"), Some(Role::Admin)).await, (cid, 1));
    let none = (String::new(), 0);
    assert_eq!(list(Some("ann"), Some(Role::Admin)).await, none);
    assert_eq!(list(Some("ann"), None).await, (ann, 1));
}
