//! Descriptions of platforms for the settings page.

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    ChannelField, ChannelProfile, ChannelState, ChannelStatus, ConnectMode,
};

use crate::platform::{CredentialField, PlatformFactory};

/// Platforms of DeerFlow that this build does not support, with their names.
const UNSUPPORTED: [(&str, &str); 2] = [("wechat", "WeChat"), ("buzz", "Buzz")];

/// Describes a supported platform.
pub(super) fn of_factory(factory: &dyn PlatformFactory) -> ChannelProfile {
    let field = |field: &CredentialField| ChannelField {
        name: field.name.to_owned(),
        label: field.label.to_owned(),
        secret: field.secret,
    };
    let fields = factory.fields().iter().chain(factory.optional_fields());
    ChannelProfile {
        display_name: factory.display_name().to_owned(),
        supported: true,
        connections: false,
        connect_mode: factory.connect_mode(),
        link: None,
        fields: fields.map(field).collect(),
    }
}

/// Describes a platform of DeerFlow that this build does not support.
pub(super) fn of_unsupported(provider: &str, since: DateTime<Utc>) -> Option<ChannelStatus> {
    let (provider, name) = UNSUPPORTED.iter().find(|(known, _)| *known == provider)?;
    Some(ChannelStatus {
        provider: (*provider).to_owned(),
        profile: ChannelProfile {
            display_name: (*name).to_owned(),
            supported: false,
            connections: true,
            connect_mode: ConnectMode::BindingCode,
            link: None,
            fields: Vec::new(),
        },
        enabled: false,
        configured: false,
        state: ChannelState::Off,
        account: None,
        bot_name: None,
        since,
    })
}
