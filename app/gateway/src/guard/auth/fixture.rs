//! Authentication over stores in memory, for tests.

use std::sync::Arc;

use axum::http::Request;
use axum::http::request::Parts;
use deerflow_accounts::{SessionCache, SessionToken, Signer, SigningSecret};
use deerflow_domain::accounts::{
    AccountStores, Admission, AuditAction, Email, InMemoryAccounts, NewAccount, NewAuditEntry,
    NewSession, Role, Session,
};
use deerflow_domain::api_keys::{ApiKeyStore, InMemoryApiKeyStore};
use harness::clock::{Clock, ManualClock};
use harness::ids::{IdSource, SystemIds};

use super::{AccountPresence, Authenticator, AuthenticatorParts, KeyRule, Sessions};

/// Stores behind an authenticator.
pub(crate) struct Stores {
    pub(crate) keys: Arc<dyn ApiKeyStore>,
    pub(crate) accounts: AccountStores,
    pub(crate) signer: Signer,
    pub(crate) clock: Arc<ManualClock>,
}

/// Creates an authenticator with the internal token `internal-token`.
pub(crate) fn authenticator(rule: KeyRule) -> (Authenticator, Stores) {
    let manual = Arc::new(ManualClock::starting_at(chrono::DateTime::UNIX_EPOCH));
    let clock: Arc<dyn Clock> = manual.clone();
    let accounts = Arc::new(InMemoryAccounts::default());
    let keys: Arc<dyn ApiKeyStore> = Arc::new(InMemoryApiKeyStore::with_accounts(accounts.clone()));
    let accounts = accounts.stores();
    let nowhere = std::path::Path::new("/nonexistent");
    let secret = SigningSecret::load(Some("secret"), nowhere).expect("a configured secret");
    let signer = Signer::new(&secret);
    let sessions = Sessions {
        cache: Arc::new(SessionCache::new(accounts.sessions.clone(), clock.clone())),
        signer: signer.clone(),
        clock: clock.clone(),
    };
    let authenticator = Authenticator::new(AuthenticatorParts {
        rule,
        keys: keys.clone(),
        sessions,
        presence: Arc::new(AccountPresence::new(accounts.accounts.clone())),
        internal_token: Some("internal-token".into()),
        clock,
    });
    let stores = Stores {
        keys,
        accounts,
        signer,
        clock: manual,
    };
    (authenticator, stores)
}

/// Builds the head of a request.
pub(crate) fn request(method: &str, path: &str, headers: &[(&'static str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request").into_parts().0
}

/// Signed-in person of a test.
pub(crate) struct Person {
    pub(crate) token: String,
    pub(crate) csrf: String,
    pub(crate) id: String,
}

impl Stores {
    /// Creates an account of a role and starts a session.
    pub(crate) async fn sign_in(&self, email: &str, role: Role) -> Person {
        let at = self.clock.now();
        let entry = |action| NewAuditEntry::new(action, at);
        let new = NewAccount {
            id: email.replace(['@', '.'], "-"),
            email: Email::parse(email).expect("an e-mail"),
            role,
            password_hash: None,
            identity: None,
            needs_setup: false,
            admission: Admission::Always,
            at,
        };
        let account = self
            .accounts
            .accounts
            .create(new, entry(AuditAction::AccountCreated));
        let account = account.await.expect("created");
        let token = SessionToken::generate();
        let session = Session {
            id: SystemIds::default().random(),
            user_id: account.id.clone(),
            token_hash: token.hash(),
            created_at: at,
            last_used_at: at,
            persistent: true,
            user_agent: None,
            address: None,
        };
        let new = NewSession {
            session,
            if_password: None,
        };
        let started = self
            .accounts
            .sessions
            .start(new, entry(AuditAction::SignIn));
        started.await.expect("started");
        Person {
            csrf: self.signer.csrf_token(&token.hash()),
            token: token.expose().to_owned(),
            id: account.id,
        }
    }
}
