//! Routes under `/channels`.

use super::operations::{read, remove, send};
use crate::openapi::groups::CHANNELS;
use crate::openapi::{Routes, delete};
use crate::requests::bodies::ChannelCredentials;
use crate::routes::channels;

const CREDENTIALS: &str = "/channels/{provider}/runtime-config";

pub(super) fn routes() -> Routes {
    of_users().merge(of_administrators())
}

fn of_users() -> Routes {
    let connect = send(
        CHANNELS,
        "/channels/{provider}/connect",
        "connect_channel",
        "Creates a code that connects an account of a chat platform.",
    );
    let disconnect = delete(
        "/channels/connections/{connection_id}",
        "delete_channel_connection",
        "Disconnects an account of a chat platform.",
    )
    .tag(CHANNELS)
    .names();
    Routes::default()
        .routes(
            read(
                CHANNELS,
                "/channels/providers",
                "list_channel_providers",
                "Lists the chat platforms.",
            )
            .handled_by(channels::providers),
        )
        .routes(
            read(
                CHANNELS,
                "/channels/connections",
                "list_channel_connections",
                "Lists the caller's connected accounts, newest first.",
            )
            .handled_by(channels::connections),
        )
        .routes(
            disconnect
                .returns_empty(204, "Disconnected.")
                .handled_by(channels::disconnect),
        )
        .routes(connect.handled_by(channels::connect))
}

fn of_administrators() -> Routes {
    let configure = send(
        CHANNELS,
        CREDENTIALS,
        "put_channel_credentials",
        "Stores the credentials of a bot and restarts its channel.",
    );
    let forget = remove(
        CHANNELS,
        CREDENTIALS,
        "delete_channel_credentials",
        "Deletes the stored credentials of a bot.",
    );
    let restart = send(
        CHANNELS,
        "/channels/{provider}/restart",
        "restart_channel",
        "Restarts a channel.",
    );
    // Clients that follow the redirect see its target's response.
    let redirect = read(
        CHANNELS,
        "/channels",
        "redirect_channel_status",
        "Redirects to the state of the channels.",
    );
    Routes::default()
        .routes(
            configure
                .body::<ChannelCredentials>()
                .fails_with(&[503])
                .handled_by(channels::configure),
        )
        .routes(forget.fails_with(&[503]).handled_by(channels::forget))
        .routes(
            read(
                CHANNELS,
                "/channels/",
                "get_channel_status",
                "Returns the state of the channels.",
            )
            .handled_by(channels::status),
        )
        .routes(
            redirect
                .returns_empty(307, "The same address with a slash at its end.")
                .handled_by(channels::add_slash),
        )
        .routes(restart.fails_with(&[503]).handled_by(channels::restart))
}
