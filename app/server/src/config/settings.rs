//! Server settings from the environment: address, data location and access.

use std::net::IpAddr;
use std::path::PathBuf;

use deerflow_gateway::guard::auth::KeyRule;
use harness::config::{DEFAULT_SQLITE_DIR, DatabaseConfig};
use harness::config_file::{Environment, parse_switch};

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 8001;

/// Settings of a server process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// `GATEWAY_HOST`: the address to listen on.
    pub host: String,
    /// `GATEWAY_PORT`: the port to listen on; 0 takes any free one.
    pub port: u16,
    /// `DEER_FLOW_PROJECT_ROOT`, else the working directory.
    pub project_root: PathBuf,
    /// `DEER_FLOW_HOME`, else `.deer-flow` in the project root: everything the server writes.
    pub home: PathBuf,
    /// `DEER_FLOW_AUTH_DISABLED`, if it is exactly `1`: authentication is disabled. Not for
    /// production.
    pub auth_disabled: bool,
    /// `DEER_FLOW_ALLOW_INSECURE_BIND`: allows disabled authentication on any address.
    pub allow_insecure_bind: bool,
    /// `GATEWAY_ALLOWED_HOSTS`: additional host names of a server on loopback; `*` allows any.
    pub allowed_hosts: Vec<String>,
    /// `GATEWAY_CORS_ORIGINS`: web origins that may send requests with credentials.
    pub cors_origins: Vec<String>,
    /// `GATEWAY_ENABLE_DOCS`: serves the API description.
    pub docs_enabled: bool,
    /// `DEER_FLOW_ENV`, else `ENVIRONMENT`.
    pub deployment: Deployment,
}

/// Deployment environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deployment {
    /// Any environment other than production.
    Development,
    /// `prod` or `production`.
    Production,
}

/// Reason why the environment is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The value of a variable is not allowed.
    #[error("environment variable {variable} is {found:?}, allowed: {allowed}")]
    Variable {
        /// Name of the environment variable.
        variable: &'static str,
        /// Value.
        found: String,
        /// Allowed values.
        allowed: &'static str,
    },
    /// `DEER_FLOW_PROJECT_ROOT` is not a directory.
    #[error("DEER_FLOW_PROJECT_ROOT is {}, which is not a directory", path.display())]
    ProjectRoot {
        /// Value.
        path: PathBuf,
    },
    /// The server would be reachable from other machines without authentication.
    #[error(
        "refusing to listen on {host} without authentication: anyone who can reach this address could run code here; unset DEER_FLOW_AUTH_DISABLED, or set DEER_FLOW_ALLOW_INSECURE_BIND=1 if a proxy in front of this server authenticates users"
    )]
    InsecureBind {
        /// Address.
        host: String,
    },
}

/// Machines that can reach the server, and the authentication; its text is for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exposure {
    /// This machine only, with authentication disabled.
    LoopbackAuthDisabled,
    /// This machine only, without credentials until there is an account.
    Loopback,
    /// Any machine, with a session or an API key.
    WithKey,
    /// Any machine without authentication, explicitly allowed.
    Anywhere,
}

impl std::fmt::Display for Exposure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LoopbackAuthDisabled => "authentication is off, only this machine can connect",
            Self::Loopback => "only this machine can connect, without credentials until there is an account",
            Self::WithKey => "every request needs a session or an API key; create a key with `deerflow keys create`",
            Self::Anywhere => "serving without authentication beyond this machine, since DEER_FLOW_ALLOW_INSECURE_BIND is set",
        })
    }
}

impl Settings {
    /// Reads the settings and makes paths absolute.
    pub fn from_environment(environment: &Environment) -> Result<Self, SettingsError> {
        let project_root = environment.project_root();
        if environment.filled("DEER_FLOW_PROJECT_ROOT").is_some() && !project_root.is_dir() {
            return Err(SettingsError::ProjectRoot { path: project_root });
        }
        let home = match environment.filled("DEER_FLOW_HOME") {
            Some(home) => environment.resolve(home),
            None => project_root.join(".deer-flow"),
        };
        let deployment = deployment(environment);
        let production = deployment == Deployment::Production;
        Ok(Self {
            host: environment
                .filled("GATEWAY_HOST")
                .unwrap_or(DEFAULT_HOST)
                .to_owned(),
            port: port(environment)?,
            home,
            project_root,
            // DeerFlow accepts no other spelling: a word must not open an installation by accident.
            auth_disabled: environment.get("DEER_FLOW_AUTH_DISABLED") == Some("1") && !production,
            allow_insecure_bind: switch(environment, "DEER_FLOW_ALLOW_INSECURE_BIND", false)?,
            allowed_hosts: list(environment.get("GATEWAY_ALLOWED_HOSTS").unwrap_or_default()),
            cors_origins: list(environment.get("GATEWAY_CORS_ORIGINS").unwrap_or_default()),
            docs_enabled: switch(environment, "GATEWAY_ENABLE_DOCS", true)?,
            deployment,
        })
    }

    /// Returns the host without the brackets of an IPv6 address.
    pub fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Reports whether the address is reachable from this machine only.
    pub fn is_loopback(&self) -> bool {
        let host = self.bare_host();
        match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Returns the exposure of the server; an error if other machines could connect without
    /// authentication and this is not explicitly allowed.
    pub fn exposure(&self) -> Result<Exposure, SettingsError> {
        match (self.is_loopback(), self.auth_disabled) {
            (true, true) => Ok(Exposure::LoopbackAuthDisabled),
            (true, false) => Ok(Exposure::Loopback),
            (false, false) => Ok(Exposure::WithKey),
            (false, true) if self.allow_insecure_bind => Ok(Exposure::Anywhere),
            (false, true) => Err(SettingsError::InsecureBind {
                host: self.host.clone(),
            }),
        }
    }

    /// Returns whether requests need credentials.
    pub fn key_rule(&self) -> KeyRule {
        match (self.auth_disabled, self.is_loopback()) {
            (true, _) => KeyRule::Off,
            (false, true) => KeyRule::Optional,
            (false, false) => KeyRule::Required,
        }
    }

    /// Returns the directory of the SQLite file: as configured, else inside [`Settings::home`].
    pub fn sqlite_dir(&self, database: &DatabaseConfig) -> PathBuf {
        if database.sqlite_dir.as_os_str() == DEFAULT_SQLITE_DIR {
            self.home.join("data")
        } else {
            self.project_root.join(&database.sqlite_dir)
        }
    }
}

fn port(environment: &Environment) -> Result<u16, SettingsError> {
    match environment.filled("GATEWAY_PORT") {
        None => Ok(DEFAULT_PORT),
        Some(text) => text.parse().map_err(|_| SettingsError::Variable {
            variable: "GATEWAY_PORT",
            found: text.to_owned(),
            allowed: "a port from 0 to 65535",
        }),
    }
}

fn switch(
    environment: &Environment,
    variable: &'static str,
    default: bool,
) -> Result<bool, SettingsError> {
    match environment.filled(variable) {
        None => Ok(default),
        Some(word) => parse_switch(word).ok_or_else(|| SettingsError::Variable {
            variable,
            found: word.to_owned(),
            allowed: "1 or 0, true or false, yes or no, on or off",
        }),
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',')
        .map(|item| item.trim().trim_end_matches('/'))
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

fn deployment(environment: &Environment) -> Deployment {
    let word = environment
        .filled("DEER_FLOW_ENV")
        .or_else(|| environment.filled("ENVIRONMENT"))
        .unwrap_or_default()
        .to_ascii_lowercase();
    match word.as_str() {
        "prod" | "production" => Deployment::Production,
        _ => Deployment::Development,
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
