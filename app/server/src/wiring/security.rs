//! Creates what decides about who may send requests.

use std::sync::Arc;

use deerflow_domain::accounts::UserData;
use deerflow_gateway::SecurityState;
use deerflow_gateway::guard::auth::{Authenticator, AuthenticatorParts};
use deerflow_gateway::guard::origin_policy::{Hosts, OriginPolicy};
use deerflow_gateway::guard::trusted_proxies::TrustedProxies;
use harness::config_file::{Environment, parse_switch};

use super::context::Context;
use super::sign_in;
use super::stores::Stores;
use crate::config::Settings;
use crate::gateway_ports::access::ConfiguredAccess;

pub(super) fn open(
    context: &Context<'_>,
    stores: &Stores,
    user_data: Vec<Arc<dyn UserData>>,
) -> anyhow::Result<SecurityState> {
    let environment = context.config.environment();
    let sign_in = sign_in::open(context, stores, user_data)?;
    let internal_token = environment.filled("DEER_FLOW_INTERNAL_AUTH_TOKEN");
    let persistence = environment.filled("DEER_FLOW_AUTH_ALLOW_INSECURE_PERSISTENT_COOKIE");
    Ok(SecurityState {
        authenticator: Authenticator::new(AuthenticatorParts {
            rule: context.settings.key_rule(),
            keys: stores.keys.clone(),
            sessions: sign_in.sessions,
            presence: sign_in.services.presence.clone(),
            internal_token: internal_token.map(Into::into),
            clock: stores.clock.clone(),
        }),
        origin_policy: origin_policy(context.settings),
        access: access(context, stores),
        trusted_proxies: trusted_proxies(environment),
        insecure_persistence: persistence.and_then(parse_switch).unwrap_or_default(),
        sign_in: sign_in.services,
    })
}

/// Creates the rules of roles.
pub(super) fn access(context: &Context<'_>, stores: &Stores) -> Arc<ConfiguredAccess> {
    Arc::new(ConfiguredAccess {
        config: context.config.clone(),
        accounts: stores.accounts.accounts.clone(),
    })
}

/// Beyond loopback, the host names of the server are unknown, and a foreign name does not lead to it
/// by accident.
fn origin_policy(settings: &Settings) -> OriginPolicy {
    let hosts = if settings.is_loopback() {
        Hosts::LoopbackAnd(settings.allowed_hosts.clone())
    } else {
        Hosts::Any
    };
    OriginPolicy::new(hosts, settings.cors_origins.clone())
}

fn trusted_proxies(environment: &Environment) -> TrustedProxies {
    let Some(list) = environment.filled("AUTH_TRUSTED_PROXIES") else {
        return TrustedProxies::default();
    };
    let (proxies, wrong) = TrustedProxies::parse(list);
    for entry in wrong {
        tracing::warn!(
            entry,
            "AUTH_TRUSTED_PROXIES has an entry that is neither an address nor a network, skipping it"
        );
    }
    proxies
}
