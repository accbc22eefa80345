//! Admission of the sender of an event, with its connection from the store.

use deerflow_domain::channels::{ChannelStoreError, ExternalIdentity};

use crate::bot::Bot;
use crate::people::{Admission, admit};
use crate::platform::Event;

/// Decides whether the sender of an event may use the bot.
pub(super) async fn admission_of(bot: &Bot, event: &Event) -> Result<Admission, ChannelStoreError> {
    let identity = ExternalIdentity {
        provider: bot.provider.to_owned(),
        account: event.sender.id.clone(),
        workspace: event.workspace.clone(),
    };
    let connection = match bot.rules.connections.enabled {
        true => bot.hub.stores.connections.find_active(&identity).await?,
        false => None,
    };
    if let Some(connection) = &connection {
        let connections = &bot.hub.stores.connections;
        if connections.is_suspended(&connection.user_id).await? {
            return Ok(Admission::Ignored("the account of the person is disabled"));
        }
    }
    Ok(admit(bot.provider, &bot.rules, event, connection.as_ref()))
}
