//! How a question is asked, as the command line says it.

use harness::client::ChatOptions;

use crate::cli::ChatArgs;

/// The options that the command line names.
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

/// The command with which a person allows what a thread waits for, asked as the question was: what the agent can do depends on it.
pub(crate) fn command_to_allow(thread: &impl std::fmt::Display, asked: &ChatOptions) -> String {
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

/// As a shell reads it as one word.
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
    fn a_question_is_answered_as_it_was_asked() {
        let mut asked = ChatOptions::default();
        assert_eq!(
            command_to_allow(&"t", &asked),
            "deerflow chat --thread t --answer yes"
        );
        asked.model_name = Some("my model's".to_owned());
        asked.agent_name = Some("writer".to_owned());
        asked.reasoning_effort = Some("high".to_owned());
        (
            asked.thinking_enabled,
            asked.plan_mode,
            asked.subagent_enabled,
            asked.recursion_limit,
        ) = (false, true, true, 7);
        let command = command_to_allow(&"t", &asked);
        assert!(
            command.contains(r" --model 'my model'\''s' --agent writer "),
            "{command}"
        );
        // As a shell reads it.
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
            (asked, true, "yes")
        );
    }
}
