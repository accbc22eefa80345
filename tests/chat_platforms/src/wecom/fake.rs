//! Handle of the running fake.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::options::WeComOptions;
use super::state::{Outgoing, Shown, World};
use super::{control, files, session};
use crate::common::{Calls, Faults, Server, accept_socket, control_routes};

/// Running fake. It stops when it is dropped.
#[derive(Debug)]
pub struct WeComFake {
    server: Server,
    world: Arc<World>,
}

impl WeComFake {
    /// Starts the fake.
    pub async fn start(options: WeComOptions) -> std::io::Result<Self> {
        let (listener, address) = Server::bind(options.port).await?;
        let world = Arc::new(World::new(options, format!("http://{address}")));
        let routes = Router::new()
            .route("/", get(connect))
            .route("/files/{id}", get(download))
            .with_state(world.clone())
            .merge(control::routes(world.clone()))
            .merge(control_routes(world.calls.clone(), world.faults.clone()));
        Ok(Self {
            server: Server::serve(listener, address, routes),
            world,
        })
    }

    /// Returns the base address of the server.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// Returns the address of the long connection.
    pub fn ws_url(&self) -> String {
        self.server.socket_base()
    }

    /// Returns the recorded frames. Their methods are the commands, such as `aibot_respond_msg`;
    /// the body of each has `req_id` in addition.
    pub fn calls(&self) -> &Calls {
        &self.world.calls
    }

    /// Returns the scripted faults, by command. [`Fault::Answer`](crate::common::Fault::Answer)
    /// takes `errcode` and `errmsg` from its body.
    pub fn faults(&self) -> &Faults {
        &self.world.faults
    }

    /// Returns what persons see, in the order of its first appearance.
    pub fn shown(&self) -> Vec<Shown> {
        self.world.state.lock().shown.clone()
    }

    /// `true` if later connections receive messages again.
    pub fn redelivers(&self) -> bool {
        !self.world.options.redelivery.is_zero()
    }

    /// Returns the number of subscribed connections since the start.
    pub fn subscriptions(&self) -> u64 {
        self.world.state.lock().subscriptions
    }

    /// `true` if a bot is connected.
    pub fn is_connected(&self) -> bool {
        let state = self.world.state.lock();
        let connection = state.connection.as_ref();
        connection.is_some_and(|connection| !connection.sender.is_closed())
    }

    /// Sends a text of a person in the direct chat, or in a group if `group` is present. Returns
    /// the id of the request, or `None` if no bot is connected: the message is lost then, unless
    /// the fake redelivers.
    pub fn say(&self, person: &str, group: Option<&str>, text: &str) -> Option<String> {
        self.world.say(
            person,
            group,
            json!({"msgtype": "text", "text": {"content": text}}),
        )
    }

    /// Sends a message with this content, such as `{"msgtype": "image", "image": {..}}`.
    pub fn say_content(&self, person: &str, group: Option<&str>, content: Value) -> Option<String> {
        self.world.say(person, group, content)
    }

    /// Sends a text as it is, valid or not. Returns `false` if no bot is connected.
    pub fn send_raw(&self, text: impl Into<String>) -> bool {
        self.world.send(Outgoing::Text(text.into()))
    }

    /// Sends bytes as a binary message. Returns `false` if no bot is connected.
    pub fn send_binary(&self, bytes: Vec<u8>) -> bool {
        self.world.send(Outgoing::Binary(bytes))
    }

    /// Ends the connection as if the same bot had connected elsewhere.
    pub fn displace(&self) -> bool {
        self.world.send(Outgoing::Displace)
    }

    /// Ends the connection without a close frame.
    pub fn drop_connection(&self) -> bool {
        self.world.send(Outgoing::Drop)
    }

    /// Stops answering pings, or answers them again.
    pub fn ignore_pings(&self, ignore: bool) {
        self.world.state.lock().ignores_pings = ignore;
    }

    /// Advances the time by which streams expire and rates are counted.
    pub fn advance(&self, by: Duration) {
        self.world.state.lock().ahead += by;
    }

    /// Offers an encrypted file. Returns the `url` and `aeskey` of a message about it.
    pub fn offer(&self, content: &[u8]) -> Value {
        self.world.offer(content)
    }

    /// Returns an uploaded file by its media id: name and content.
    pub fn uploaded(&self, media_id: &str) -> Option<(String, Vec<u8>)> {
        self.world.state.lock().uploads.media.get(media_id).cloned()
    }
}

async fn connect(State(world): State<Arc<World>>, request: Request) -> Response {
    accept_socket(request, move |socket| session::run(world, socket))
}

async fn download(State(world): State<Arc<World>>, Path(id): Path<String>) -> Response {
    let found = world.state.lock().offered.get(&id).cloned();
    match found {
        Some(bytes) => (
            [
                (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
                (
                    header::CONTENT_DISPOSITION,
                    format!("attachment; filename=\"{}\"", files::NAME),
                ),
            ],
            bytes,
        )
            .into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
