//! Handle of a running fake.

use std::sync::Arc;

use crate::common::{Server, control_routes};

use super::control::people_routes;
use super::limits::Limits;
use super::options::TelegramOptions;
use super::people::People;
use super::queue::UpdateQueue;
use super::routes::api_routes;
use super::shared::Shared;
use super::world::World;

/// Id of the first update.
const FIRST_UPDATE: i64 = 100;

/// Running fake of the Bot API. It stops when it is dropped.
#[derive(Debug)]
pub struct TelegramFake {
    server: Server,
    people: People,
}

impl TelegramFake {
    /// Starts a fake on a loopback port.
    pub async fn start(options: TelegramOptions) -> std::io::Result<Self> {
        let bot_id = options
            .token
            .split(':')
            .next()
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(1);
        let world = World::new(
            bot_id,
            options.username.clone(),
            UpdateQueue::new(FIRST_UPDATE, options.webhook.clone()),
            Limits::new(options.rate_limits),
        );
        let (listener, address) = Server::bind(options.port).await?;
        let shared = Arc::new(Shared::new(options, world));
        let routes = control_routes(shared.calls.clone(), shared.faults.clone());
        let people = People::new(Arc::clone(&shared));
        let routes = routes
            .merge(people_routes(people.clone()))
            .merge(api_routes(shared));
        Ok(Self {
            server: Server::serve(listener, address, routes),
            people,
        })
    }

    /// Returns the base address.
    pub fn base(&self) -> String {
        self.server.base()
    }
}

impl std::ops::Deref for TelegramFake {
    type Target = People;

    fn deref(&self) -> &People {
        &self.people
    }
}
