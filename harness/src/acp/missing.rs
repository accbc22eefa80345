//! What is said of a program that is not there: what was looked for, where, and what to do about it.

use secrecy::ExposeSecret;

use crate::config::AcpAgentConfig;
use crate::programs::find_program;

/// The launcher of Codex that speaks the protocol, and the program that does not.
const CODEX: (&str, &str) = ("codex-acp", "codex");

/// What is missing to start an agent; nothing when its program is there. `path` is the `PATH` that it gets where its entry says none.
pub fn missing_program(name: &str, agent: &AcpAgentConfig, path: &str) -> Option<String> {
    let path = agent
        .env
        .get("PATH")
        .map_or(path, |own| own.expose_secret());
    let is_there = |command: &str| find_program(command, path).is_some();
    (!is_there(&agent.command)).then(|| explained(name, &agent.command, is_there))
}

fn explained(name: &str, command: &str, is_there: impl Fn(&str) -> bool) -> String {
    let place = if command.contains('/') {
        "does not exist or cannot be run"
    } else {
        "was not found on PATH"
    };
    let program = command.rsplit('/').next().unwrap_or(command);
    let advice = match program {
        _ if command.trim().contains(char::is_whitespace) => "`command` is one program alone, what follows it belongs in `args`".to_owned(),
        "npx" | "npm" | "node" => "install Node.js".to_owned(),
        "uvx" | "uv" => "install uv".to_owned(),
        program if program == CODEX.0 && is_there(CODEX.1) => {
            "the `codex` that is installed does not speak ACP: install its adapter codex-acp, or have it fetched with `command: npx` and \
             `args: [\"-y\", \"@zed-industries/codex-acp\"]`"
                .to_owned()
        }
        program => format!("install {program} for the user that runs this server"),
    };
    format!("its command `{command}` {place}; {advice}, or change `acp_agents.{name}.command`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_program_that_is_missing() {
        let nothing = |_: &str| false;
        let told = explained("a", "my-agent", nothing);
        assert_eq!(
            told,
            "its command `my-agent` was not found on PATH; install my-agent for the user that runs this server, or change `acp_agents.a.command`"
        );
        assert!(explained("a", "npx", nothing).contains("install Node.js"));
        assert!(explained("a", "npx -y x", nothing).contains("belongs in `args`"));
        assert!(
            explained("a", "/opt/x", nothing).contains("`/opt/x` does not exist or cannot be run")
        );
        assert!(
            explained("a", "codex-acp", |program| program == "codex")
                .contains("does not speak ACP")
        );
        assert!(!explained("a", "codex-acp", nothing).contains("does not speak ACP"));
    }
}
