//! Sign-in of the gateway under test, over stores in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_accounts::oidc::ProviderClient;
use deerflow_accounts::password::PasswordPool;
use deerflow_accounts::{
    AccountDeletion, SessionCache, SignIn, SignInParts, Signer, SigningSecret,
};
use deerflow_domain::accounts::{AccountStores, InMemoryAccounts};
use deerflow_domain::api_keys::InMemoryApiKeyStore;
use deerflow_gateway::guard::auth::{
    ADMIN, AccountPresence, Authenticator, AuthenticatorParts, KeyRule, Sessions,
};
use deerflow_gateway::guard::origin_policy::{Hosts, OriginPolicy};
use deerflow_gateway::guard::trusted_proxies::TrustedProxies;
use deerflow_gateway::ports::{AccessControl, SignInRules};
use deerflow_gateway::{SecurityState, SignInServices};
use harness::clock::Clock;
use harness::config::{OidcConfig, RoleRules};
use harness::ids::SystemIds;
use harness::runtime::actor_context::ActorContext;
use harness::runtime::runs::store::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Rules that tests change.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) registration: Mutex<bool>,
    pub(crate) per_hour: Mutex<u32>,
    pub(crate) setup_time: Mutex<Duration>,
    pub(crate) oidc: Mutex<OidcConfig>,
}

impl SignInRules for Rules {
    fn allows_registration(&self) -> bool {
        *self.registration.lock()
    }

    fn registrations_per_hour(&self) -> u32 {
        *self.per_hour.lock()
    }

    fn setup_time(&self) -> Duration {
        *self.setup_time.lock()
    }

    fn oidc(&self) -> OidcConfig {
        self.oidc.lock().clone()
    }
}

/// Rules of people who are no administrators; `None` while roles restrict nothing.
#[derive(Debug, Default)]
pub(crate) struct RoleTable(pub(crate) Mutex<Option<RoleRules>>);

#[async_trait]
impl AccessControl for RoleTable {
    async fn rules_of(&self, actor: &ActorContext) -> Result<Option<RoleRules>, StoreError> {
        let is_admin = actor.scopes.iter().any(|scope| scope == ADMIN);
        Ok(self.0.lock().clone().filter(|_| !is_admin))
    }
}

/// Stores and rules behind a security state.
pub(crate) struct Accounts {
    pub(crate) keys: Arc<InMemoryApiKeyStore>,
    pub(crate) stores: AccountStores,
    pub(crate) rules: Arc<Rules>,
    /// Rules of roles, which tests change.
    pub(crate) access: Arc<RoleTable>,
    clock: Arc<dyn Clock>,
}

impl Accounts {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let accounts = Arc::new(InMemoryAccounts::default());
        Self {
            keys: Arc::new(InMemoryApiKeyStore::with_accounts(accounts.clone())),
            stores: accounts.stores(),
            rules: Arc::new(Rules {
                registration: Mutex::new(true),
                per_hour: Mutex::new(0),
                setup_time: Mutex::new(Duration::from_secs(1_800)),
                oidc: Mutex::default(),
            }),
            access: Arc::default(),
            clock,
        }
    }

    /// Creates the security state of a node over the stores.
    pub(crate) fn security(&self, rule: KeyRule) -> SecurityState {
        let (clock, stores) = (&self.clock, &self.stores);
        let secret = SigningSecret::load(Some("secret"), Path::new("/")).expect("configured");
        let cache = Arc::new(SessionCache::new(stores.sessions.clone(), clock.clone()));
        let presence = Arc::new(AccountPresence::new(stores.accounts.clone()));
        let service = SignIn::new(SignInParts {
            stores: stores.clone(),
            passwords: PasswordPool::default(),
            cache: cache.clone(),
            clock: clock.clone(),
            ids: Arc::new(SystemIds::default()),
        });
        let deletion =
            AccountDeletion::new(stores.clone(), cache.clone(), Vec::new(), clock.clone());
        SecurityState {
            authenticator: Authenticator::new(AuthenticatorParts {
                rule,
                keys: self.keys.clone(),
                sessions: Sessions {
                    cache,
                    signer: Signer::new(&secret),
                    clock: clock.clone(),
                },
                presence: presence.clone(),
                internal_token: None,
                clock: clock.clone(),
            }),
            origin_policy: OriginPolicy::new(
                Hosts::LoopbackAnd(vec![]),
                vec!["https://ui.test".to_owned()],
            ),
            trusted_proxies: TrustedProxies::default(),
            access: self.access.clone(),
            insecure_persistence: false,
            sign_in: Arc::new(SignInServices {
                service,
                providers: ProviderClient::new(clock.clone()).expect("certificates"),
                deletion,
                stores: stores.clone(),
                keys: self.keys.clone(),
                presence,
                rules: self.rules.clone(),
                started_at: Instant::now(),
            }),
        }
    }
}
