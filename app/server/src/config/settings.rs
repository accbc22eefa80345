//! What the environment decides about the server: where it listens, where it keeps its data, who may come in.

use std::net::IpAddr;
use std::path::PathBuf;

use harness::config::{DEFAULT_SQLITE_DIR, DatabaseConfig};

use super::environment::{Environment, parse_switch};

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 8001;

/// Settings of one server process.
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
    /// `DEER_FLOW_AUTH_DISABLED`, never in production.
    pub auth_disabled: bool,
    /// `DEER_FLOW_ALLOW_INSECURE_BIND`: let everybody in, on any address.
    pub allow_insecure_bind: bool,
    /// `GATEWAY_CORS_ORIGINS`: web origins that may call with credentials.
    pub cors_origins: Vec<String>,
    /// `GATEWAY_ENABLE_DOCS`: serve the API's description.
    pub docs_enabled: bool,
    /// `DEER_FLOW_ENV`, else `ENVIRONMENT`.
    pub deployment: Deployment,
}

/// Where a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deployment {
    /// Anywhere but production.
    Development,
    /// `prod` or `production`.
    Production,
}

/// Why an environment describes no server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A variable has a value that is not allowed.
    #[error("environment variable {variable} is {found:?}, allowed: {allowed}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// Its value.
        found: String,
        /// What would do.
        allowed: &'static str,
    },
    /// `DEER_FLOW_PROJECT_ROOT` is no directory.
    #[error("DEER_FLOW_PROJECT_ROOT is {}, which is not a directory", path.display())]
    ProjectRoot {
        /// Its value.
        path: PathBuf,
    },
    /// Everybody could come in from outside.
    #[error(
        "refusing to listen on {host} without authentication: anybody who reaches this address could run code here; \
         listen on 127.0.0.1 (GATEWAY_HOST), or set DEER_FLOW_ALLOW_INSECURE_BIND=1 if something in front of this \
         server signs users in"
    )]
    OpenToEverybody {
        /// The address.
        host: String,
    },
}

/// How far a server without authentication can be reached; its text is for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exposure {
    /// This machine only, as asked for.
    LoopbackAuthDisabled,
    /// This machine only.
    Loopback,
    /// Any machine, as asked for by name.
    Anywhere,
}

impl std::fmt::Display for Exposure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LoopbackAuthDisabled => "authentication is off, only this machine can connect",
            Self::Loopback => "serving without authentication, only this machine can connect",
            Self::Anywhere => "serving without authentication beyond this machine, since DEER_FLOW_ALLOW_INSECURE_BIND is set",
        })
    }
}

impl Settings {
    /// Reads the settings; paths become absolute.
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
            host: environment.filled("GATEWAY_HOST").unwrap_or(DEFAULT_HOST).to_owned(),
            port: port(environment)?,
            home,
            project_root,
            auth_disabled: switch(environment, "DEER_FLOW_AUTH_DISABLED", false)? && !production,
            allow_insecure_bind: switch(environment, "DEER_FLOW_ALLOW_INSECURE_BIND", false)?,
            cors_origins: list(environment.get("GATEWAY_CORS_ORIGINS").unwrap_or_default()),
            docs_enabled: switch(environment, "GATEWAY_ENABLE_DOCS", true)?,
            deployment,
        })
    }

    /// Whether only this machine can reach the address.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// How far the server can be reached without signing in; an error when that is too far.
    pub fn exposure(&self) -> Result<Exposure, SettingsError> {
        match (self.is_loopback(), self.auth_disabled) {
            (true, true) => Ok(Exposure::LoopbackAuthDisabled),
            (true, false) => Ok(Exposure::Loopback),
            (false, _) if self.allow_insecure_bind => Ok(Exposure::Anywhere),
            (false, _) => Err(SettingsError::OpenToEverybody { host: self.host.clone() }),
        }
    }

    /// The directory of the SQLite file: as configured, else inside [`Settings::home`].
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

fn switch(environment: &Environment, variable: &'static str, default: bool) -> Result<bool, SettingsError> {
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
    text.split(',').map(|item| item.trim().trim_end_matches('/')).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn deployment(environment: &Environment) -> Deployment {
    let word = environment.filled("DEER_FLOW_ENV").or_else(|| environment.filled("ENVIRONMENT")).unwrap_or_default().to_ascii_lowercase();
    match word.as_str() {
        "prod" | "production" => Deployment::Production,
        _ => Deployment::Development,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from_environment(&Environment::of("/work-dir", variables.iter().copied()))
    }

    #[test]
    fn an_empty_environment_serves_this_machine_on_8001() {
        let settings = settings(&[]).unwrap();
        assert_eq!((settings.host.as_str(), settings.port), ("127.0.0.1", 8001));
        assert_eq!(settings.home, PathBuf::from("/work-dir/.deer-flow"));
        assert!(settings.docs_enabled && !settings.auth_disabled && settings.cors_origins.is_empty());
        assert_eq!(settings.exposure().unwrap(), Exposure::Loopback);
    }

    #[test]
    fn values_are_read_from_the_variables_deerflow_uses() {
        let settings = settings(&[
            ("GATEWAY_PORT", "9000"),
            ("DEER_FLOW_HOME", "data"),
            ("GATEWAY_CORS_ORIGINS", " http://a.test/ ,,http://b.test"),
            ("GATEWAY_ENABLE_DOCS", "false"),
            ("DEER_FLOW_AUTH_DISABLED", "1"),
        ])
        .unwrap();
        assert_eq!(settings.port, 9000);
        assert_eq!(settings.home, PathBuf::from("/work-dir/data"));
        assert_eq!(settings.cors_origins, ["http://a.test", "http://b.test"]);
        assert!(!settings.docs_enabled);
        assert_eq!(settings.exposure().unwrap(), Exposure::LoopbackAuthDisabled);
    }

    #[test]
    fn wrong_words_are_refused_by_variable() {
        let error = settings(&[("GATEWAY_PORT", "80000")]).unwrap_err().to_string();
        assert_eq!(error, "environment variable GATEWAY_PORT is \"80000\", allowed: a port from 0 to 65535");
        assert!(settings(&[("DEER_FLOW_AUTH_DISABLED", "maybe")]).is_err());
        assert!(settings(&[("DEER_FLOW_PROJECT_ROOT", "/does/not/exist")]).is_err());
    }

    #[test]
    fn production_ignores_the_switch_that_turns_authentication_off() {
        for name in ["DEER_FLOW_ENV", "ENVIRONMENT"] {
            for word in ["prod", "Production"] {
                assert!(!settings(&[("DEER_FLOW_AUTH_DISABLED", "1"), (name, word)]).unwrap().auth_disabled);
            }
        }
        let development_wins = [("DEER_FLOW_AUTH_DISABLED", "1"), ("DEER_FLOW_ENV", "dev"), ("ENVIRONMENT", "prod")];
        assert!(settings(&development_wins).unwrap().auth_disabled);
    }

    #[test]
    fn other_machines_are_kept_out_unless_the_insecure_switch_is_named() {
        for host in ["0.0.0.0", "::", "192.168.1.5", "example.test", "::ffff:10.0.0.1"] {
            let error = settings(&[("GATEWAY_HOST", host), ("DEER_FLOW_AUTH_DISABLED", "1")]).unwrap().exposure().unwrap_err().to_string();
            assert!(error.contains(host) && error.contains("DEER_FLOW_ALLOW_INSECURE_BIND=1"), "{error}");
            let named = [("GATEWAY_HOST", host), ("DEER_FLOW_ALLOW_INSECURE_BIND", "1")];
            assert_eq!(settings(&named).unwrap().exposure().unwrap(), Exposure::Anywhere);
        }
        for host in ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"] {
            assert!(settings(&[("GATEWAY_HOST", host)]).unwrap().exposure().is_ok(), "{host}");
        }
    }

    #[test]
    fn the_default_database_lives_at_home_and_another_in_the_project() {
        let settings = settings(&[("DEER_FLOW_HOME", "/home-dir")]).unwrap();
        let mut database = DatabaseConfig::default();
        assert_eq!(settings.sqlite_dir(&database), PathBuf::from("/home-dir/data"));
        database.sqlite_dir = PathBuf::from("db");
        assert_eq!(settings.sqlite_dir(&database), PathBuf::from("/work-dir/db"));
        database.sqlite_dir = PathBuf::from("/elsewhere");
        assert_eq!(settings.sqlite_dir(&database), PathBuf::from("/elsewhere"));
    }
}
