//! Embedded client over the stores of an installation, for programs that depend on this crate
//! rather than on harness alone.

use std::path::Path;

use harness::client::Client;
use harness::config_file::{Environment, load};
use harness::runtime::tasks::Tasks;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigHandle, Settings};
use crate::lifecycle::shut_down_app;
use crate::wiring::{App, Role};

/// Installation opened in this process as a guest, like `deerflow chat` does: it executes only the
/// runs of its own client.
#[derive(Debug)]
pub struct Embedded {
    app: App,
}

impl Embedded {
    /// Opens the installation of `environment`, with the configuration file `config` if given.
    /// Later changes of the file have no effect.
    ///
    /// # Errors
    /// The configuration or the stores cannot be used.
    pub async fn open(config: Option<&Path>, environment: Environment) -> anyhow::Result<Self> {
        let loaded = load(config, &environment)?;
        loaded.log();
        let settings = Settings::from_environment(&environment)?;
        let config = ConfigHandle::new(loaded, environment);
        Ok(Self {
            app: App::build(
                &settings,
                &config,
                Role::Guest,
                Tasks::new(),
                CancellationToken::new(),
            )
            .await?,
        })
    }

    /// Returns the client.
    pub fn client(&self) -> &Client {
        &self.app.client
    }

    /// Shuts the runtime down. Active runs are released, for the next start or a server.
    pub async fn close(self) {
        shut_down_app(&self.app, Instant::now()).await;
    }
}

#[cfg(test)]
mod tests {
    use harness::ids::ThreadId;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn reopened_installation_has_messages_and_goal() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, "config_version: 34\nmodels:\n  - { name: m, use: scripted, model: s }\ntitle:\n  enabled: false\n").unwrap();
        let open = || {
            Embedded::open(
                Some(&file),
                Environment::of(folder.path(), None::<(String, String)>),
            )
        };
        let thread = ThreadId::parse("63fc735a-a27d-408f-adc4-705b1c1c7001").unwrap();
        let first = open().await.unwrap();
        assert_eq!(
            first
                .client()
                .chat("then say hello", &thread)
                .await
                .unwrap(),
            "hello"
        );
        first.client().set_goal(&thread, "be polite").await.unwrap();
        first.close().await;

        let again = open().await.unwrap();
        let record = again.client().get_thread(&thread).await.unwrap().unwrap();
        assert_eq!(record.values["messages"][1]["content"], "hello");
        assert_eq!(again.client().list_threads(10).await.unwrap().len(), 1);
        assert_eq!(
            again
                .client()
                .get_goal(&thread)
                .await
                .unwrap()
                .goal
                .unwrap()
                .objective,
            "be polite"
        );
        again.close().await;
    }
}
