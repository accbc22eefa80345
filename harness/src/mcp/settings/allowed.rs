//! Which programs may be configured over HTTP: launchers of published servers, without the ways to have them run anything else.
//!
//! What stands in the file already is its owner's word, and stays.

use serde_json::Value;

use super::change::{PROGRAM, said};
use super::package::{self, Doubt};

/// Long options that run code given to them; each may be shortened.
const CODE: [&str; 9] = [
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
/// Variables that tell programs what to run.
const VARIABLES: [&str; 20] = [
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
/// Beginnings of such variables: of loaders, and of launchers, which take from them where packages and settings come from.
const FAMILIES: [&str; 7] = ["LD_", "DYLD_", "NPM_CONFIG_", "GIT_", "PIP_", "UV_", "XDG_"];

/// Refuses a program that is new and not allowed.
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
    let is_known =
        |field: &str| stored.is_some_and(|stored| said(stored, field) == said(server, field));
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
        .find(|field| said(server, field).is_some() && !is_known(field))
    {
        return Err(format!(
            "`{field}` of server '{name}' is not allowed here: launchers run what lies where they start"
        ));
    }
    let args: Vec<&str> = server
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let shortened = |arg: &str| arg.chars().take(40).collect::<String>();
    if let Some(option) = args.iter().find(|arg| runs_code(arg)) {
        return Err(format!(
            "The argument '{}' of server '{name}' is not allowed here: it runs code",
            shortened(option)
        ));
    }
    match package::doubt(command, &args) {
        Some(Doubt::Option(option)) => {
            return Err(format!(
                "The option '{}' of server '{name}' is not allowed here before the package",
                shortened(option)
            ));
        }
        Some(Doubt::Package(package)) => {
            return Err(format!(
                "The package '{}' of server '{name}' is not allowed here: it is no name of a published one",
                shortened(package)
            ));
        }
        None => {}
    }
    let variables = server.get("env").and_then(Value::as_object);
    match variables.and_then(|variables| variables.keys().find(|variable| steers(variable))) {
        Some(variable) => Err(format!(
            "The variable '{variable}' of server '{name}' is not allowed here: it says what to run"
        )),
        None => Ok(()),
    }
}

fn runs_code(arg: &str) -> bool {
    let option = arg.split('=').next().unwrap_or(arg);
    if option.starts_with("--") {
        return option.len() > 2 && CODE.iter().any(|code| code.starts_with(option));
    }
    // Short options may stand together.
    option.strip_prefix('-').is_some_and(|letters| {
        letters.chars().all(|c| c.is_ascii_alphabetic()) && letters.contains(['c', 'e'])
    })
}

fn steers(variable: &str) -> bool {
    let variable = variable.to_ascii_uppercase();
    VARIABLES.contains(&variable.as_str())
        || FAMILIES.iter().any(|family| variable.starts_with(family))
}
