//! Rules for programs that may be configured over HTTP: launchers of published packages, without
//! options that make them run other code.
//!
//! Programs that are already in the file were configured by its owner and stay allowed.

use serde_json::Value;

use super::package::{self, RejectedArgument};
use super::program_fields::{PROGRAM, non_blank};

/// Long options that run code from their value; launchers accept abbreviations.
const CODE_OPTIONS: [&str; 9] = [
    "--call",
    "--eval",
    "--exec",
    "--node-options",
    "--require",
    "--import",
    "--loader",
    "--shell",
    "--script-shell",
];
/// Environment variables that control what programs execute.
const EXECUTION_VARIABLES: [&str; 20] = [
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HOME",
    "IFS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5OPT",
    "PREFIX",
    "PROMPT_COMMAND",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYOPT",
    "SHELLOPTS",
];
/// Prefixes of further variables with this effect: those of dynamic loaders, and those from which
/// launchers read package sources and settings.
const EXECUTION_VARIABLE_PREFIXES: [&str; 7] =
    ["LD_", "DYLD_", "NPM_CONFIG_", "GIT_", "PIP_", "UV_", "XDG_"];

/// Returns an error if the program of the server is neither stored already nor allowed.
pub(super) fn check(
    name: &str,
    server: &Value,
    stored: Option<&Value>,
    launchers: &[String],
) -> Result<(), String> {
    let kind = |server: &Value| {
        server
            .get("type")
            .or_else(|| server.get("transport"))
            .and_then(Value::as_str)
            .unwrap_or("stdio")
            .to_owned()
    };
    let is_known = |field: &str| {
        stored.is_some_and(|stored| non_blank(stored, field) == non_blank(server, field))
    };
    let is_stored = stored.is_some_and(|stored| kind(stored) == "stdio")
        && is_known("env")
        && PROGRAM.into_iter().all(is_known);
    if is_stored || kind(server) != "stdio" {
        return Ok(());
    }
    let command = server
        .get("command")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !launchers.iter().any(|launcher| launcher == command) {
        return Err(format!(
            "The command of server '{name}' is not allowed here; allowed: {}",
            launchers.join(", ")
        ));
    }
    if let Some(field) = ["cwd", "starts_in_workspace"]
        .into_iter()
        .find(|field| non_blank(server, field).is_some() && !is_known(field))
    {
        return Err(format!(
            "`{field}` of server '{name}' is not allowed here: launchers run files of their working directory"
        ));
    }
    let args: Vec<&str> = server
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let truncated = |arg: &str| arg.chars().take(40).collect::<String>();
    if let Some(option) = args.iter().find(|arg| is_code_option(arg)) {
        return Err(format!(
            "The argument '{}' of server '{name}' is not allowed here: it runs code",
            truncated(option)
        ));
    }
    match package::rejected_argument(command, &args) {
        Some(RejectedArgument::Option(option)) => {
            return Err(format!(
                "The option '{}' of server '{name}' is not allowed here before the package",
                truncated(option)
            ));
        }
        Some(RejectedArgument::Package(package)) => {
            return Err(format!(
                "The package '{}' of server '{name}' is not allowed here: it is not the name of a published package",
                truncated(package)
            ));
        }
        None => {}
    }
    let variables = server.get("env").and_then(Value::as_object);
    match variables.and_then(|variables| {
        variables
            .keys()
            .find(|variable| controls_execution(variable))
    }) {
        Some(variable) => Err(format!(
            "The variable '{variable}' of server '{name}' is not allowed here: it controls what is executed"
        )),
        None => Ok(()),
    }
}

fn is_code_option(arg: &str) -> bool {
    let option = arg.split('=').next().unwrap_or(arg);
    if option.starts_with("--") {
        return option.len() > 2 && CODE_OPTIONS.iter().any(|code| code.starts_with(option));
    }
    // Short options may be combined.
    option.strip_prefix('-').is_some_and(|letters| {
        letters.chars().all(|c| c.is_ascii_alphabetic()) && letters.contains(['c', 'e'])
    })
}

fn controls_execution(variable: &str) -> bool {
    let variable = variable.to_ascii_uppercase();
    EXECUTION_VARIABLES.contains(&variable.as_str())
        || EXECUTION_VARIABLE_PREFIXES
            .iter()
            .any(|prefix| variable.starts_with(prefix))
}
