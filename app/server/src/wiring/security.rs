//! Creates what decides about who may send requests.

use deerflow_gateway::SecurityState;
use deerflow_gateway::guard::auth::Authenticator;
use deerflow_gateway::guard::origin_policy::{Hosts, OriginPolicy};

use super::stores::Stores;
use crate::config::Settings;

pub(super) fn open(settings: &Settings, stores: &Stores) -> SecurityState {
    let (rule, keys) = (settings.key_rule(), stores.keys.clone());
    SecurityState {
        authenticator: Authenticator::new(rule, keys, stores.clock.clone()),
        origin_policy: origin_policy(settings),
    }
}

/// Beyond loopback, the host names of the server are unknown, and a proxy must check them.
fn origin_policy(settings: &Settings) -> OriginPolicy {
    let hosts = if settings.is_loopback() {
        Hosts::LoopbackAnd(settings.allowed_hosts.clone())
    } else {
        Hosts::Any
    };
    OriginPolicy::new(hosts, settings.cors_origins.clone())
}
