//! Routes of the streaming protocol.

use crate::openapi::{Routes, THREADS as TAG, get, post};
use crate::requests::bodies::{ProtocolCommand, ProtocolSubscription};
use crate::responses::documented::{ProtocolAnswer, ProtocolRefusal};
use crate::routes::protocol;

const EVENTS: &str = "/threads/{thread_id}/stream/events";

/// Routes of both dialects.
pub(super) fn shared() -> Routes {
    let command = post(
        "/threads/{thread_id}/commands",
        "command_thread",
        "Executes a command of the streaming protocol. Errors of the command have the status 200.",
    )
    .tag(TAG)
    .ids();
    let events = post(
        EVENTS,
        "stream_thread_events",
        "Streams the selected events of a thread, from its first one on. The thread need not exist, and the stream does not end.",
    )
    .tag(TAG)
    .ids();
    let socket = get(
        EVENTS,
        "open_thread_socket",
        "Opens a WebSocket for commands and events.",
    )
    .tag(TAG)
    .ids();
    Routes::default()
        .routes(
            command
                .body::<ProtocolCommand>()
                .returns::<ProtocolAnswer>("The answer.")
                .fails_as::<ProtocolRefusal>(400)
                .handled_by(protocol::commands),
        )
        .routes(
            events
                .body::<ProtocolSubscription>()
                .streams()
                .handled_by(protocol::events),
        )
        .routes(
            socket
                .returns_empty(101, "The connection is a WebSocket.")
                .fails_with(&[400, 405])
                .handled_by(protocol::socket),
        )
}
