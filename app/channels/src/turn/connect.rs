//! Connection of a person by a code.

use deerflow_domain::channels::{ConsumedCode, ExternalIdentity, code_hash};

use super::context::{Outcome, Turn, TurnError};
use crate::words;

/// Maximum length of a code.
const MAX_CODE: usize = 128;

pub(super) async fn connect(turn: &Turn<'_>, code: &str) -> Result<Outcome, TurnError> {
    let (bot, event) = (turn.bot, turn.event());
    if !bot.rules.connections.enabled {
        return Ok(turn.refuse("connections are disabled", words::CONNECTIONS_OFF));
    }
    if code.len() > MAX_CODE {
        return Ok(turn.refuse("the code is too long", words::INVALID_CODE));
    }
    let identity = ExternalIdentity {
        provider: bot.provider.to_owned(),
        account: event.sender.id.clone(),
        workspace: event.workspace.clone(),
    };
    let hash = code_hash(code);
    let names = (event.sender.name.clone(), None);
    let now = bot.hub.clock.now();
    let connections = &bot.hub.stores.connections;
    match connections
        .consume_code(&hash, &identity, names, now)
        .await?
    {
        ConsumedCode::Connected(connection) => {
            tracing::info!(channel = bot.provider, user = %connection.user_id, connection = %connection.id, "a person connected an account");
            Ok(turn.say(words::CONNECTED))
        }
        // A repetition after a lost answer finds its code used, and the connection made by it.
        ConsumedCode::Invalid if turn.group[0].row.claims > 0 => {
            let found = connections.find_active(&identity).await?;
            let is_own =
                found.is_some_and(|found| found.updated_at >= turn.group[0].row.received_at);
            Ok(if is_own {
                turn.say(words::CONNECTED)
            } else {
                turn.refuse("the code is invalid", words::INVALID_CODE)
            })
        }
        ConsumedCode::Invalid => Ok(turn.refuse("the code is invalid", words::INVALID_CODE)),
    }
}
