//! Tests of the binary through its command line.

use std::fs;
use std::process::{Command, Output};

fn deerflow(
    directory: &tempfile::TempDir,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Output {
    Command::new(env!("CARGO_BIN_EXE_deerflow"))
        .args(arguments)
        .current_dir(directory.path())
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .expect("the binary starts")
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    directory
}

const NEEDS_WORDS: &str = "config_version: 34\ntitle:\n  max_words: $WORDS\n";

#[test]
fn the_dotenv_file_is_read_and_the_environment_wins_over_it() {
    let good = project(&[("config.yaml", NEEDS_WORDS), (".env", "# words\nWORDS=7\n")]);
    let output = deerflow(&good, &["config", "check"], &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("config.yaml is valid\n"));

    let output = deerflow(&good, &["config", "check"], &[("WORDS", "70")]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("config.yaml:3:14: `title.max_words` is 70, allowed: 1 to 20"),
        "{text}"
    );
}

#[test]
fn a_broken_dotenv_file_is_named_without_its_content() {
    let broken = project(&[
        ("config.yaml", NEEDS_WORDS),
        (".env", "WORDS=7\nCANARY 's3cret\n"),
    ]);
    let output = deerflow(&broken, &["config", "check"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(".env: a line is not of the form NAME=value"),
        "{text}"
    );
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn an_old_file_is_upgraded_once() {
    let old = project(&[("config.yaml", "# mine\ntitle:\n  max_words: 4\n")]);
    let first = deerflow(&old, &["config", "upgrade"], &[]);
    assert!(
        String::from_utf8_lossy(&first.stdout).contains("added title.enabled\n"),
        "{first:?}"
    );
    let second = deerflow(&old, &["config", "upgrade"], &[]);
    assert!(
        String::from_utf8_lossy(&second.stdout).ends_with("is up to date\n"),
        "{second:?}"
    );
    let check = deerflow(&old, &["config", "check"], &[]);
    assert!(
        !String::from_utf8_lossy(&check.stdout).contains("warning"),
        "{check:?}"
    );
}

#[test]
fn the_printed_example_is_a_valid_configuration() {
    let example = deerflow(&project(&[]), &["config", "example"], &[]);
    let text = String::from_utf8(example.stdout).expect("text");
    let folder = project(&[("config.yaml", &text)]);
    assert!(
        deerflow(&folder, &["config", "check"], &[])
            .status
            .success()
    );
}

#[test]
fn missing_config_file_stops_start() {
    let output = deerflow(
        &project(&[]),
        &["serve"],
        &[("DEER_FLOW_CONFIG_PATH", "gone.yaml")],
    );
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("gone.yaml, named by DEER_FLOW_CONFIG_PATH, does not exist"),
        "{text}"
    );
}

#[test]
fn a_variable_that_is_not_utf8_stops_the_start() {
    use std::os::unix::ffi::OsStrExt;
    let value = std::ffi::OsStr::from_bytes(b"127.0.0.1\xff");
    for (variable, command) in [
        ("GATEWAY_HOST", "serve"),
        ("DEER_FLOW_HOME", "doctor"),
        ("DEERFLOW_DATABASE__BACKEND", "serve"),
    ] {
        let directory = project(&[]);
        let started = Command::new(env!("CARGO_BIN_EXE_deerflow"))
            .arg(command)
            .current_dir(directory.path())
            .env_clear()
            .env(variable, value)
            .output()
            .expect("the binary starts");
        let text = String::from_utf8_lossy(&started.stderr);
        assert_eq!(started.status.code(), Some(1), "{text}");
        assert!(
            text.contains(&format!(
                "environment variable {variable} has a value that is not UTF-8"
            )),
            "{text}"
        );
    }
}

#[test]
fn a_host_that_does_not_resolve_stops_the_start() {
    let output = deerflow(
        &project(&[]),
        &["serve"],
        &[
            ("GATEWAY_HOST", "no-such-host.invalid"),
            ("GATEWAY_PORT", "0"),
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("\"no-such-host.invalid\" does not resolve") && !text.contains("free port"),
        "{text}"
    );
}

#[test]
fn test_agent_is_rejected_beyond_loopback() {
    let testing = project(&[(
        "config.yaml",
        "config_version: 34\ntesting:\n  conformance_agent: true\n",
    )]);
    let variables = [
        ("GATEWAY_HOST", "0.0.0.0"),
        ("GATEWAY_PORT", "0"),
        ("DEER_FLOW_ALLOW_INSECURE_BIND", "1"),
    ];
    let output = deerflow(&testing, &["serve"], &variables);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("testing.conformance_agent") && text.contains("GATEWAY_HOST"),
        "{text}"
    );
}
