//! Tests of the command line.

use std::path::PathBuf;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn missing_command_means_serve() {
    let cli = Cli::parse_from(["deerflow", "--port", "9000"]);
    assert!(cli.command.is_none());
    assert_eq!(cli.serve.port, Some(9000));
    let cli = Cli::parse_from(["deerflow", "serve", "--config", "a.yaml"]);
    assert!(matches!(cli.command, Some(Command::Serve(args)) if args.file.config.is_some()));
}

#[test]
fn serve_options_before_its_name_apply_to_serve_only() {
    let command = |words: &str| Cli::parse_from(words.split(' ')).into_command();
    for words in [
        "deerflow --port 9000 serve",
        "deerflow serve --port 9000",
        "deerflow --port 8 serve --port 9000",
        "deerflow --port 9000",
    ] {
        assert!(
            matches!(
                command(words),
                Ok(Command::Serve(ServeArgs {
                    port: Some(9000),
                    ..
                }))
            ),
            "{words}"
        );
    }
    let error = command("deerflow --port 9000 doctor")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--host and --port are options of serve only"),
        "{error}"
    );
}

#[test]
fn config_flag_is_accepted_before_command() {
    for words in [
        ["--config", "a.yaml", "config", "check"],
        ["config", "--config", "a.yaml", "check"],
        ["config", "check", "--config", "a.yaml"],
    ] {
        let cli = Cli::parse_from(["deerflow"].into_iter().chain(words));
        let Some(Command::Config(ConfigCommand::Check(args))) = cli.command else {
            panic!("{words:?} checks nothing")
        };
        assert_eq!(args.config, Some(PathBuf::from("a.yaml")), "{words:?}");
    }
}
