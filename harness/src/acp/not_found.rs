//! Explains why an agent's program was not found and how to fix it.

use secrecy::ExposeSecret;

use crate::child_process::find_program;
use crate::config::AcpAgentConfig;

/// Program names of Codex: the adapter that speaks ACP, and the CLI that does not.
const CODEX: (&str, &str) = ("codex-acp", "codex");

/// Returns an explanation if the agent's program does not exist or cannot be run, else `None`.
/// `path` is the `PATH` used if the agent's entry sets none.
pub fn missing_program(name: &str, agent: &AcpAgentConfig, path: &str) -> Option<String> {
    let path = agent
        .env
        .get("PATH")
        .map_or(path, |own| own.expose_secret());
    let is_installed = |command: &str| find_program(command, path).is_some();
    (!is_installed(&agent.command)).then(|| not_found_text(name, &agent.command, is_installed))
}

fn not_found_text(name: &str, command: &str, is_installed: impl Fn(&str) -> bool) -> String {
    let problem = if command.contains('/') {
        "does not exist or cannot be run"
    } else {
        "was not found on PATH"
    };
    let program = command.rsplit('/').next().unwrap_or(command);
    let advice = match program {
        _ if command.trim().contains(char::is_whitespace) => "`command` is one program alone, what follows it belongs in `args`".to_owned(),
        "npx" | "npm" | "node" => "install Node.js".to_owned(),
        "uvx" | "uv" => "install uv".to_owned(),
        program if program == CODEX.0 && is_installed(CODEX.1) => {
            "the `codex` that is installed does not speak ACP: install its adapter codex-acp, or have it fetched with `command: npx` and \
             `args: [\"-y\", \"@zed-industries/codex-acp\"]`"
                .to_owned()
        }
        program => format!("install {program} for the user that runs this server"),
    };
    format!("its command `{command}` {problem}; {advice}, or change `acp_agents.{name}.command`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_advice_fits_the_program() {
        let none_installed = |_: &str| false;
        let text = not_found_text("a", "my-agent", none_installed);
        assert_eq!(
            text,
            "its command `my-agent` was not found on PATH; install my-agent for the user that runs this server, or change `acp_agents.a.command`"
        );
        assert!(not_found_text("a", "npx", none_installed).contains("install Node.js"));
        assert!(not_found_text("a", "npx -y x", none_installed).contains("belongs in `args`"));
        assert!(
            not_found_text("a", "/opt/x", none_installed)
                .contains("`/opt/x` does not exist or cannot be run")
        );
        assert!(
            not_found_text("a", "codex-acp", |program| program == "codex")
                .contains("does not speak ACP")
        );
        assert!(!not_found_text("a", "codex-acp", none_installed).contains("does not speak ACP"));
    }
}
