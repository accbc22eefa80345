//! Handle of the running fake.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, get};

use super::control;
use super::controls::DiscordControls;
use super::request::MAX_BODY;
use super::shared::{DiscordOptions, DiscordShared};
use super::{gateway, rest};
use crate::common::{Calls, Faults, Server, control_routes};

/// Running fake. It stops when it is dropped.
#[derive(Debug)]
pub struct DiscordFake {
    server: Server,
    controls: DiscordControls,
}

impl DiscordFake {
    /// Starts the fake.
    pub async fn start(options: DiscordOptions) -> std::io::Result<Self> {
        let (listener, address) = Server::bind(options.port).await?;
        let shared = Arc::new(DiscordShared::new(options, address));
        let controls = DiscordControls(shared.clone());
        let routes = Router::new()
            .route("/api/v10/{*path}", any(rest::call))
            .route("/attachments/{id}/{name}", get(rest::attachment))
            .route("/gateway", any(gateway::connect))
            .route("/gateway/", any(gateway::connect))
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(shared.clone())
            .merge(control::routes(controls.clone()))
            .merge(control_routes(shared.calls.clone(), shared.faults.clone()));
        Ok(Self {
            server: Server::serve(listener, address, routes),
            controls,
        })
    }

    /// Returns the base address of the REST API.
    pub fn api_base(&self) -> String {
        format!("{}/api/v10", self.server.base())
    }

    /// Returns the base address of the server.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// Returns the actions of persons and of the platform.
    pub fn controls(&self) -> &DiscordControls {
        &self.controls
    }

    /// Returns the recorded calls. Methods are named as the REST routes, such as `create_message`
    /// and `edit_message`, and `gateway identify`, `gateway resume`, `gateway heartbeat`,
    /// `gateway close`.
    pub fn calls(&self) -> &Calls {
        &self.controls.0.calls
    }

    /// Returns the scripted faults, by the names of the calls.
    pub fn faults(&self) -> &Faults {
        &self.controls.0.faults
    }
}
