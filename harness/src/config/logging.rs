//! `log_level` and `logging`: what the process says about itself.

use std::fmt;

use serde::Deserialize;

/// How much is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// What helps to find a fault.
    Debug,
    /// What an operator wants to know.
    #[default]
    Info,
    /// What may need care.
    Warning,
    /// What failed. Older configurations also say `critical`.
    Error,
}

impl LogLevel {
    /// The level as `tracing` filters spell it.
    pub fn as_filter(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_filter())
    }
}

impl TryFrom<String> for LogLevel {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "trace" => Ok(Self::Trace),
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "warn" | "warning" => Ok(Self::Warning),
            "error" | "critical" | "fatal" => Ok(Self::Error),
            _ => Err(format!(
                "found \"{text}\", expected one of trace, debug, info, warning, error, critical"
            )),
        }
    }
}

/// The shape of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoggingConfig {
    /// Correlated logging.
    pub enhance: LoggingEnhanceConfig,
}

/// Correlated logging: trace ids on answers, and a choice of format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoggingEnhanceConfig {
    /// Whether answers carry `X-Trace-Id`.
    pub enabled: bool,
    /// The format of log lines.
    pub format: LogFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}
