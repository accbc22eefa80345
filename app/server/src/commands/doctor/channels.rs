//! Check of the chat channels.

use std::sync::Arc;

use deerflow_channels::{ChannelInspector, InspectedChannel};
use deerflow_domain::channels::ChannelRuntimeError;
use futures_util::future::join_all;
use harness::clock::SystemClock;
use harness::config::AppConfig;
use harness::config_file::Environment;

use super::probes::{ChannelProbe, PROBE_TIMEOUT};
use super::report::Finding;
use crate::config::Settings;
use crate::wiring::channel_operations::unconnected;

const SUBJECT: &str = "channels";

/// Checks the credentials of enabled channels and, with a probe, asks each platform who its bot is.
pub(super) async fn channels(
    config: &AppConfig,
    settings: &Settings,
    environment: &Environment,
    probe: Option<&dyn ChannelProbe>,
) -> Vec<Finding> {
    if let Some(probe) = probe {
        let opening = probe.inspector(config, settings, environment);
        let opened = tokio::time::timeout(PROBE_TIMEOUT, opening)
            .await
            .unwrap_or_else(|_| Err("the database did not answer in time".to_owned()));
        match opened {
            Ok(inspector) => {
                let mut findings = configured(&inspector, true);
                let working = inspector.channels().into_iter().filter(is_complete);
                let asked = working.map(|channel| identity(&inspector, channel.provider));
                findings.extend(join_all(asked).await.into_iter().flatten());
                findings
            }
            Err(cause) => vec![Finding::warn(
                SUBJECT,
                format!("their stored credentials cannot be read: {cause}"),
                "fix the reported problem; the server needs these credentials too",
            )],
        }
    } else {
        match unconnected(config, Arc::new(SystemClock)) {
            Ok(inspector) => configured(&inspector, false),
            Err(cause) => vec![Finding::warn(
                SUBJECT,
                format!("{cause:#}"),
                "install the root certificates of this system",
            )],
        }
    }
}

fn is_complete(channel: &InspectedChannel) -> bool {
    channel.enabled && channel.problem.is_none()
}

/// Returns the findings about the configuration. Complete channels are reported unless they are
/// probed. The check of the configuration file reports channels that are not supported.
fn configured(inspector: &ChannelInspector, is_probed: bool) -> Vec<Finding> {
    let undecipherable = inspector.undecipherable().iter().map(|name| {
        Finding::fail(
            SUBJECT,
            format!("the stored credentials of `{name}` cannot be decrypted"),
            "restore DEER_FLOW_CHANNELS_KEY or the key file below the home, or enter the credentials again",
        )
    });
    let enabled = inspector.channels().into_iter().filter(|one| one.enabled);
    let channels = enabled.filter_map(|channel| of_channel(&channel, is_probed));
    undecipherable.chain(channels).collect()
}

fn of_channel(channel: &InspectedChannel, is_probed: bool) -> Option<Finding> {
    let name = channel.provider;
    let missing = channel.missing.join("`, `");
    match (&channel.problem, missing.is_empty()) {
        (Some(_), false) => Some(Finding::fail(
            SUBJECT,
            format!("`{name}` is enabled without `{missing}`"),
            format!("set the key below `channels.{name}`, or enter it in the settings page"),
        )),
        (Some(problem), true) => Some(Finding::fail(SUBJECT, problem, "fix this setting")),
        (None, false) => Some(Finding::warn(
            SUBJECT,
            format!(
                "`{name}` works without `{missing}`, but the settings page shows it as not configured"
            ),
            format!("set the key below `channels.{name}`, or enter it in the settings page"),
        )),
        (None, true) if is_probed => None,
        (None, true) => Some(Finding::ok(
            SUBJECT,
            format!("`{name}` has its credentials"),
        )),
    }
}

async fn identity(inspector: &ChannelInspector, name: &str) -> Vec<Finding> {
    match inspector.identify(name).await {
        Ok(identity) => {
            let found = format!(
                "`{name}` is {} (account {})",
                identity.name, identity.account
            );
            let warnings = identity.warnings.iter().map(|warning| {
                Finding::warn(
                    SUBJECT,
                    format!("`{name}`: {warning}"),
                    "change it at the platform, then `deerflow channels test` again",
                )
            });
            std::iter::once(Finding::ok(SUBJECT, found))
                .chain(warnings)
                .collect()
        }
        Err(ChannelRuntimeError::Unavailable(cause)) => vec![Finding::warn(
            SUBJECT,
            format!("the platform of `{name}` cannot be reached: {cause}"),
            "check the network, the proxy variables and the base address of this channel",
        )],
        Err(refused) => vec![Finding::fail(
            SUBJECT,
            format!("the platform of `{name}` refuses the bot: {refused}"),
            "check its credentials, and that the bot is not disabled",
        )],
    }
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
