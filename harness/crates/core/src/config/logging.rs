//! `log_level` and `logging`: settings of the log.

use std::fmt;

use serde::Deserialize;

/// Minimum level of log messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum LogLevel {
    /// All messages.
    Trace,
    /// Messages for debugging.
    Debug,
    /// Messages for operators.
    #[default]
    Info,
    /// Unexpected conditions that may need attention.
    Warning,
    /// Failures. Older configurations also use `critical`.
    Error,
}

impl LogLevel {
    /// Returns the level in the notation of `tracing` filters.
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

/// Format of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoggingConfig {
    /// Settings of correlated logging.
    pub enhance: LoggingEnhanceConfig,
}

/// Correlated logging: trace ids in responses, and the log format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoggingEnhanceConfig {
    /// Adds trace ids to log lines, and to responses as `X-Trace-Id`.
    pub enabled: bool,
    /// Format of log lines.
    pub format: LogFormat,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogFormat {
    /// Readable text.
    #[default]
    Text,
    /// JSON, one object per line.
    Json,
}
