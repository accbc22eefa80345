//! Chat options from the command line, and back.

use harness::client::ChatOptions;

use crate::cli::ChatArgs;

/// Returns the options given on the command line.
pub(super) fn options(args: &ChatArgs) -> ChatOptions {
    let mut options = ChatOptions::default();
    options.model_name.clone_from(&args.model);
    options.agent_name.clone_from(&args.agent);
    options.reasoning_effort.clone_from(&args.reasoning);
    options.thinking_enabled = !args.no_thinking;
    options.plan_mode = args.plan;
    options.subagent_enabled = args.subagents;
    options.recursion_limit = args.recursion_limit;
    options
}

/// Returns the shell command that approves the pending calls of a thread, with the options of the
/// original question, because they determine what the agent can do.
pub(crate) fn approval_command(thread: &impl std::fmt::Display, asked: &ChatOptions) -> String {
    let usual = ChatOptions::default();
    let switches = [
        ("--no-thinking", !asked.thinking_enabled),
        ("--plan", asked.plan_mode),
        ("--subagents", asked.subagent_enabled),
    ];
    let values = [
        ("--model", &asked.model_name),
        ("--agent", &asked.agent_name),
        ("--reasoning", &asked.reasoning_effort),
    ];
    let limit = (asked.recursion_limit != usual.recursion_limit)
        .then(|| format!(" --recursion-limit {}", asked.recursion_limit));
    let switches = switches
        .into_iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| format!(" {name}"));
    let values = values
        .into_iter()
        .filter_map(|(name, value)| Some(format!(" {name} {}", quoted(value.as_deref()?))));
    let named: String = switches.chain(values).chain(limit).collect();
    format!("deerflow chat --thread {thread}{named} --answer yes")
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn approval_command_repeats_question_options() {
        let mut original = ChatOptions::default();
        assert_eq!(
            approval_command(&"t", &original),
            "deerflow chat --thread t --answer yes"
        );
        original.model_name = Some("my model's".to_owned());
        original.agent_name = Some("writer".to_owned());
        original.reasoning_effort = Some("high".to_owned());
        (
            original.thinking_enabled,
            original.plan_mode,
            original.subagent_enabled,
            original.recursion_limit,
        ) = (false, true, true, 7);
        let command = approval_command(&"t", &original);
        assert!(
            command.contains(r" --model 'my model'\''s' --agent writer "),
            "{command}"
        );
        // Parse the command like a shell.
        let words = command
            .replace(r"'my model'\''s'", "my_model")
            .split(' ')
            .map(|word| word.replace("my_model", "my model's"))
            .collect::<Vec<_>>();
        let Ok(Cli {
            command: Some(Command::Chat(args)),
            ..
        }) = Cli::try_parse_from(words)
        else {
            panic!("{command}")
        };
        assert_eq!(
            (options(&args), args.answer, args.message.join(" ").as_str()),
            (original, true, "yes")
        );
    }
}
