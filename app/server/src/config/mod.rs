//! Configuration: where it is found, how it is read, checked, watched and upgraded.
//!
//! Layers, the later winning: defaults of the typed sections, `config.yaml`, variables such as
//! `DEERFLOW_DATABASE__BACKEND`. What the environment alone decides is in [`Settings`].

mod document;
mod environment;
mod error;
mod explain;
mod handle;
mod known_keys;
mod load;
mod locate;
mod older_store;
mod overrides;
mod settings;
mod sign_in;
mod unknown_keys;
mod upgrade;
mod variables;
mod watch;
mod without_effect;

pub use document::Place;
pub use environment::Environment;
pub use error::{ConfigError, Origin, Problem, SyntaxError, Warning};
pub use handle::{ConfigHandle, Reload, STARTUP_ONLY};
pub use load::{Loaded, load, load_file};
pub use locate::{locate, locate_extensions};
pub use settings::{Deployment, Exposure, Settings, SettingsError};
pub use upgrade::{EXAMPLE, Upgrade, UpgradeError, upgrade_file};
pub use watch::watch;
