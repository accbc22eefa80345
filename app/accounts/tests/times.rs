//! Measurement: a login takes the same time for a known and an unknown e-mail.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deerflow_accounts::password::PasswordPool;
use deerflow_accounts::{Client, Credentials, SessionCache, SignIn, SignInError, SignInParts};
use deerflow_domain::accounts::{Account, AuditAction, InMemoryAccounts, NewAuditEntry};
use deerflow_domain::testkit::accounts::account;
use harness::clock::{Clock, ManualClock};
use harness::ids::SystemIds;
use harness::testkit::at;

/// Measured logins per kind.
const LOGINS: usize = 200;

/// Returns a service with [`LOGINS`] accounts, each with a password of its own hash.
async fn service() -> SignIn {
    let stores = Arc::new(InMemoryAccounts::default()).stores();
    let passwords = PasswordPool::default();
    let hash = passwords.hash(&"correct horse".into()).await.unwrap();
    let accounts = (0..LOGINS).map(|n| Account {
        password_hash: Some(hash.clone()),
        ..account(&format!("u{n}"), &format!("known{n}@example.org"))
    });
    let entry = NewAuditEntry::new(AuditAction::AccountImported, at(0));
    stores
        .accounts
        .import(accounts.collect(), entry)
        .await
        .unwrap();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::starting_at(at(0)));
    SignIn::new(SignInParts {
        cache: Arc::new(SessionCache::new(stores.sessions.clone(), clock.clone())),
        stores,
        passwords,
        clock,
        ids: Arc::new(SystemIds::default()),
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures times; make sign-in-times runs it"]
async fn known_and_unknown_email_take_equal_time() {
    let service = service().await;
    let login = async |email: String, n: usize| {
        // An address has 50 failures within the limit.
        let address = IpAddr::from([10, 0, 1, u8::try_from(n / 20).unwrap()]);
        let client = Client {
            address,
            agent: None,
        };
        let entered = Credentials {
            email,
            password: "wrong horse".to_owned().into(),
            persistent: false,
        };
        let start = Instant::now();
        let refused = service.login(&entered, &client).await;
        let taken = start.elapsed();
        assert_eq!(refused.unwrap_err(), SignInError::BadCredentials);
        taken
    };
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for n in 0..LOGINS {
        known.push(login(format!("known{n}@example.org"), n).await);
        unknown.push(login(format!("other{n}@example.org"), n).await);
    }
    let (known, unknown) = (median(known), median(unknown));
    let ratio = known.as_secs_f64() / unknown.as_secs_f64();
    println!(
        "median of {LOGINS} logins: known e-mail {known:?}, unknown {unknown:?}, ratio {ratio:.3}"
    );
    assert!((0.95..=1.05).contains(&ratio), "ratio {ratio:.3}");
}
