//! Handle of the running fake.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, get};

use super::control;
use super::controls::DingTalkControls;
use super::rest::MAX_BODY;
use super::shared::{DingTalkOptions, DingTalkShared};
use super::{rest, stream};
use crate::common::{Calls, Faults, Server, control_routes};

/// Running fake. It stops when it is dropped.
#[derive(Debug)]
pub struct DingTalkFake {
    server: Server,
    controls: DingTalkControls,
}

impl DingTalkFake {
    /// Starts the fake.
    pub async fn start(options: DingTalkOptions) -> std::io::Result<Self> {
        let (listener, address) = Server::bind(options.port).await?;
        let shared = Arc::new(DingTalkShared::new(options, address));
        let controls = DingTalkControls(shared.clone());
        let routes = Router::new()
            .route("/v1.0/{*path}", any(rest::call))
            .route("/media/upload", any(rest::call))
            .route("/files/{code}", get(rest::file))
            .route("/connect", any(stream::connect))
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(shared.clone())
            .merge(control::routes(controls.clone()))
            .merge(control_routes(shared.calls.clone(), shared.faults.clone()));
        Ok(Self {
            server: Server::serve(listener, address, routes),
            controls,
        })
    }

    /// Returns the base address.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// Returns the actions of persons and of the platform.
    pub fn controls(&self) -> &DingTalkControls {
        &self.controls
    }

    /// Returns the recorded calls: `open`, `token`, `send_direct`, `send_group`, `create_card`,
    /// `stream_card`, `download`, `upload`, `file`, `connect`, `close`, `ack message`, `ack ping`,
    /// `ack disconnect`.
    pub fn calls(&self) -> &Calls {
        &self.controls.0.calls
    }

    /// Returns the scripted faults, by the names of the calls.
    pub fn faults(&self) -> &Faults {
        &self.controls.0.faults
    }
}
