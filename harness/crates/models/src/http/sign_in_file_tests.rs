//! Tests of the credentials files of other programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use secrecy::ExposeSecret;
use serde_json::json;

use super::*;

fn entry(kind: &str, path: &Path) -> ModelEntry {
    let mut entry = ModelEntry::new("e", kind, "m");
    entry
        .extra
        .insert("credentials_path".to_owned(), json!(path.to_str().unwrap()));
    entry
}

#[test]
fn codex_and_claude_layouts_are_parsed() {
    let tokens = json!({"access_token": "token", "account_id": "acc", "refresh_token": "r"});
    for (file, secret, account, is_key) in [
        (
            json!({"OPENAI_API_KEY": null, "tokens": tokens}),
            "token",
            Some("acc"),
            false,
        ),
        (
            json!({"OPENAI_API_KEY": "sk-k", "tokens": null}),
            "sk-k",
            None,
            true,
        ),
        (
            json!({"auth_mode": "chatgpt", "OPENAI_API_KEY": "sk-k", "tokens": tokens}),
            "token",
            Some("acc"),
            false,
        ),
        (
            json!({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-k", "tokens": tokens}),
            "sk-k",
            None,
            true,
        ),
        (
            json!({"claudeAiOauth": {"accessToken": "two"}}),
            "two",
            None,
            false,
        ),
    ] {
        let sign_in = parse_sign_in(&file.to_string()).unwrap();
        assert_eq!(
            (
                sign_in.secret.expose_secret(),
                sign_in.account.as_deref(),
                sign_in.is_key
            ),
            (secret, account, is_key),
            "{file}"
        );
    }
}

#[test]
fn invalid_file_error_names_fix_and_hides_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.json");
    let failure = |kind: &str| sign_in(&entry(kind, &path)).unwrap().unwrap_err();
    let codex = |expected: &str| {
        let failure = failure("codex");
        assert!(
            failure.contains(expected)
                && failure.contains(path.to_str().unwrap())
                && failure.contains("`codex login`"),
            "{failure}"
        );
        assert!(!failure.contains("canary"), "{failure}");
    };
    codex("cannot be read");
    assert!(
        failure("claude").contains("`claude /login`")
            && failure("openai").ends_with(": sign in again")
    );
    fs::create_dir(&path).unwrap();
    codex("is not a file");
    fs::remove_dir(&path).unwrap();
    for (text, expected) in [
        ("canary", "is not a JSON file"),
        (
            r#"{"tokens": {"refresh_token": "canary"}}"#,
            "contains no token",
        ),
    ] {
        fs::write(&path, text).unwrap();
        codex(expected);
    }
    fs::write(&path, [0xff, 0xfe]).unwrap();
    codex("cannot be read");
    fs::write(&path, " ".repeat(65 << 10)).unwrap();
    codex("is longer than 64 KiB");
    fs::write(&path, r#"{"access_token": "canary"}"#).unwrap();
    assert_eq!(sign_in(&entry("codex", &path)), Some(Ok(path.clone())));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    codex("is writable by all users");
}

#[test]
fn file_is_not_read_if_the_entry_has_a_key() {
    let nowhere = Path::new("/nowhere/auth.json");
    let mut other = entry("claude", nowhere);
    other
        .extra
        .insert("anthropic_api_key".to_owned(), json!("k"));
    assert!(sign_in(&other).is_none());
    assert!(
        sign_in(&ModelEntry {
            api_key: Some("k".into()),
            ..entry("codex", nowhere)
        })
        .is_none()
    );
    assert!(sign_in(&ModelEntry::new("e", "codex", "m")).is_none());
}
