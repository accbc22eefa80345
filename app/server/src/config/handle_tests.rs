//! Tests of configuration changes while the server runs.

use std::fs;
use std::time::Duration;

use harness::config::{DatabaseBackend, FileSignature};
use harness::config_file::load_file;
use tokio_util::sync::CancellationToken;

use super::super::watch::{reload_changed, watch};
use super::*;

struct Edited {
    dir: tempfile::TempDir,
    handle: ConfigHandle,
}

impl Edited {
    fn starting_with(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.yaml");
        fs::write(&path, text).unwrap();
        let environment = Environment::of(dir.path(), [("KEY", "value")]);
        let loaded = load_file(&path, &environment).unwrap();
        Self {
            handle: ConfigHandle::new(loaded, environment),
            dir,
        }
    }

    fn write(&self, text: &str) {
        fs::write(self.dir.path().join("config.yaml"), text).unwrap();
    }

    fn words(&self) -> u32 {
        self.handle.current().title.max_words
    }
}

#[test]
fn valid_edit_is_applied_and_active_work_keeps_its_config() {
    let edited = Edited::starting_with("title: {max_words: 5}\n");
    let running = edited.handle.current();
    let seen = edited.handle.subscribe();
    edited.write("title: {max_words: 8}\n");
    assert!(matches!(
        edited.handle.reload_now(),
        Reload::Replaced { .. }
    ));
    assert_eq!(edited.words(), 8);
    assert_eq!(running.title.max_words, 5);
    assert_eq!(seen.borrow().title.max_words, 8);
    assert!(seen.has_changed().unwrap());
}

#[test]
fn invalid_edit_keeps_last_config_and_is_logged_once() {
    let edited = Edited::starting_with("title: {max_words: 5}\n");
    for broken in [
        "title: {max_words: 99}\n",
        "title: [\n",
        "title: {max_words: $UNSET}\n",
        "- list\n",
        "",
        " \n",
        "# all gone\n",
        "null\n",
    ] {
        edited.write(broken);
        assert!(
            matches!(edited.handle.reload_now(), Reload::Refused(_)),
            "{broken}"
        );
        assert!(
            matches!(edited.handle.reload_now(), Reload::Unchanged),
            "{broken}"
        );
        assert_eq!(edited.words(), 5);
    }
    edited.write("title: {max_words: 6}\n");
    edited.handle.reload_now();
    assert_eq!(edited.words(), 6);
}

#[test]
fn missing_file_keeps_last_config() {
    let edited = Edited::starting_with("title: {max_words: 5}\n");
    fs::remove_file(edited.dir.path().join("config.yaml")).unwrap();
    assert!(matches!(edited.handle.reload_now(), Reload::Refused(_)));
    assert!(matches!(edited.handle.reload_now(), Reload::Unchanged));
    assert_eq!(edited.words(), 5);
    edited.write("title: {max_words: 7}\n");
    edited.handle.reload_now();
    assert_eq!(edited.words(), 7);
}

#[test]
fn comment_edit_notifies_no_subscriber() {
    let edited = Edited::starting_with("title: {max_words: 5}\n");
    let seen = edited.handle.subscribe();
    edited.write("# a comment\ntitle: {max_words: 5}\n");
    assert!(matches!(edited.handle.reload_now(), Reload::Unchanged));
    assert!(!seen.has_changed().unwrap());
}

#[test]
fn startup_sections_are_reported_as_awaiting_restart() {
    let edited = Edited::starting_with("title: {max_words: 5}\nscheduler: {enabled: false}\n");
    edited.write("title: {max_words: 6}\ndatabase: {backend: memory}\nscheduler: {enabled: true}\nlog_level: debug\n");
    let Reload::Replaced { awaiting_restart } = edited.handle.reload_now() else {
        panic!("not replaced");
    };
    assert_eq!(awaiting_restart, ["database", "log_level", "scheduler"]);
    let current = edited.handle.current();
    assert_eq!(current.title.max_words, 6);
    assert_eq!(current.database.backend, DatabaseBackend::Sqlite);
    assert_eq!(current.untyped("scheduler").unwrap()["enabled"], false);

    edited.write("title: {max_words: 7}\nscheduler: {enabled: false}\n");
    let Reload::Replaced { awaiting_restart } = edited.handle.reload_now() else {
        panic!("not replaced");
    };
    assert_eq!(awaiting_restart, [""; 0]);
}

#[test]
fn built_in_defaults_never_change() {
    let dir = tempfile::tempdir().unwrap();
    let environment = Environment::of(dir.path().join("project"), [("A", "b")]);
    let loaded = harness::config_file::load(None, &environment).unwrap();
    let handle = ConfigHandle::new(loaded, environment);
    assert!(handle.path().is_none());
    assert!(matches!(handle.reload_now(), Reload::Unchanged));
}

#[tokio::test]
async fn watcher_applies_edit_and_stops_on_shutdown() {
    let edited = Edited::starting_with("title: {max_words: 5}\n");
    let mut seen = edited.handle.subscribe();
    let shutdown = CancellationToken::new();
    let editing = async {
        // Replaced by renaming, like editors do.
        let draft = edited.dir.path().join("draft");
        fs::write(&draft, "title: {max_words: 9}\n").unwrap();
        fs::rename(&draft, edited.dir.path().join("config.yaml")).unwrap();
        tokio::time::timeout(Duration::from_secs(30), seen.changed())
            .await
            .unwrap()
            .unwrap();
        shutdown.cancel();
    };
    tokio::join!(watch(edited.handle.clone(), shutdown.clone()), editing);
    assert_eq!(edited.words(), 9);
}

#[test]
fn poll_reads_the_file_only_after_a_change() {
    let edited = Edited::starting_with("title: {max_words: 5}\n");
    let before = reload_changed(&edited.handle, None);
    edited.write("title: {max_words: 10}\n");
    let after = reload_changed(&edited.handle, before);
    assert_eq!(edited.words(), 10);
    edited.write("title: {max_words: 9}\n");
    let facts = fs::metadata(edited.handle.path().unwrap()).unwrap();
    reload_changed(&edited.handle, Some(FileSignature::of(&facts)));
    assert_eq!(edited.words(), 10, "the file counts as unchanged");
    reload_changed(&edited.handle, after);
    assert_eq!(edited.words(), 9);
}
