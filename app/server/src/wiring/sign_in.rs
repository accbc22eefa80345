//! Creates the services of sign-in.

use std::sync::Arc;

use deerflow_accounts::oidc::ProviderClient;
use deerflow_accounts::password::PasswordPool;
use deerflow_accounts::{
    AccountDeletion, SessionCache, SignIn, SignInParts, Signer, SigningSecret,
};
use deerflow_domain::accounts::UserData;
use deerflow_gateway::SignInServices;
use deerflow_gateway::guard::auth::{AccountPresence, Sessions};
use tokio::time::Instant;

use super::context::Context;
use super::stores::Stores;
use crate::gateway_ports::sign_in_rules::ConfigSignInRules;

/// Services of sign-in.
pub(super) struct SignInArea {
    pub(super) services: Arc<SignInServices>,
    /// Sessions, which authenticate requests.
    pub(super) sessions: Sessions,
}

/// Creates the services. `user_data` is what is deleted with an account.
pub(super) fn open(
    context: &Context<'_>,
    stores: &Stores,
    user_data: Vec<Arc<dyn UserData>>,
) -> anyhow::Result<SignInArea> {
    let (clock, accounts) = (&stores.clock, &stores.accounts);
    let secret = context.config.environment().filled("AUTH_JWT_SECRET");
    let secret = SigningSecret::load(secret, &context.settings.home)?;
    let cache = Arc::new(SessionCache::new(accounts.sessions.clone(), clock.clone()));
    let service = SignIn::new(SignInParts {
        stores: accounts.clone(),
        passwords: PasswordPool::default(),
        cache: cache.clone(),
        clock: clock.clone(),
        ids: context.ids.clone(),
    });
    let deletion = AccountDeletion::new(accounts.clone(), cache.clone(), user_data, clock.clone());
    Ok(SignInArea {
        services: Arc::new(SignInServices {
            service,
            providers: ProviderClient::new(clock.clone())?,
            deletion,
            stores: accounts.clone(),
            keys: stores.keys.clone(),
            presence: Arc::new(AccountPresence::new(accounts.accounts.clone())),
            rules: Arc::new(ConfigSignInRules(context.config.clone())),
            started_at: Instant::now(),
        }),
        sessions: Sessions {
            cache,
            signer: Signer::new(&secret),
            clock: clock.clone(),
        },
    })
}
