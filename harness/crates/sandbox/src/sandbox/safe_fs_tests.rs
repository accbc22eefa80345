//! Opening beneath a handle, with both resolvers.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType};

use super::super::pending_file::Durability;
use super::*;

const RESOLVERS: [Resolver; 2] = [Resolver::Kernel, Resolver::Walk];

fn plain(raw: &str) -> RelativePath {
    RelativePath::parse(raw).expect("plain path")
}

fn start(resolver: Resolver) -> (tempfile::TempDir, SafeDir) {
    let fixture = tempfile::tempdir().expect("temporary directory");
    let dir = SafeDir::open_trusted(fixture.path(), resolver).expect("open");
    (fixture, dir)
}

/// Fails instead of hanging if the operation blocks.
fn at_once<T: Send + 'static>(operation: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(operation()));
    result
        .recv_timeout(Duration::from_secs(20))
        .expect("the operation must not block")
}

#[test]
fn detect_returns_working_resolver() {
    let (fixture, _) = start(Resolver::Walk);
    std::fs::write(fixture.path().join("a"), "x").expect("write");
    let dir = SafeDir::open_trusted(fixture.path(), Resolver::detect()).expect("open");
    assert!(dir.open_read(&plain("a")).is_ok());
}

#[test]
fn create_dirs_creates_missing_and_retains_existing() {
    for resolver in RESOLVERS {
        let (fixture, dir) = start(resolver);
        dir.create_dirs(&plain("a/b/c"), SHARED_DIR).expect("new");
        std::fs::write(fixture.path().join("a/b/kept"), "x").expect("write");
        dir.create_dirs(&plain("a/b/d"), PRIVATE_DIR)
            .expect("half new");
        dir.create_dirs(&plain("a/b"), SHARED_DIR).expect("old");
        assert!(fixture.path().join("a/b/kept").is_file());
        let mode = std::fs::metadata(fixture.path().join("a/b/d"))
            .expect("made")
            .mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[test]
fn each_obstacle_has_its_own_failure() {
    for resolver in RESOLVERS {
        let (fixture, dir) = start(resolver);
        std::fs::create_dir(fixture.path().join("d")).expect("dir");
        std::fs::write(fixture.path().join("f"), "x").expect("file");
        symlink("d", fixture.path().join("to-d")).expect("link");
        symlink("f", fixture.path().join("to-f")).expect("link");
        std::fs::write(fixture.path().join("d/inner"), "x").expect("file");
        let read = |raw: &str| dir.open_read(&plain(raw)).expect_err("must fail");
        assert!(
            matches!(read("nothing"), FileFailure::NotFound),
            "{resolver:?}"
        );
        assert!(
            matches!(read("nothing/at/all"), FileFailure::NotFound),
            "{resolver:?}"
        );
        assert!(
            matches!(read("d"), FileFailure::IsDirectory),
            "{resolver:?}"
        );
        assert!(matches!(read(""), FileFailure::IsDirectory), "{resolver:?}");
        assert!(
            matches!(read("f/inner"), FileFailure::NotDirectory),
            "{resolver:?}"
        );
        assert!(matches!(read("to-f"), FileFailure::Symlink), "{resolver:?}");
        assert!(
            matches!(read("to-d/inner"), FileFailure::Symlink),
            "{resolver:?}"
        );
        let enter = |raw: &str| dir.open_dir(&plain(raw)).expect_err("must fail");
        assert!(
            matches!(enter("to-d"), FileFailure::Symlink),
            "{resolver:?}"
        );
        assert!(
            matches!(enter("f"), FileFailure::NotDirectory),
            "{resolver:?}"
        );
        let create = dir
            .create_dirs(&plain("to-d/new"), SHARED_DIR)
            .expect_err("must fail");
        assert!(matches!(create, FileFailure::Symlink), "{resolver:?}");
        assert!(!fixture.path().join("d/new").exists());
    }
}

#[test]
fn special_files_are_rejected_without_blocking() {
    for resolver in RESOLVERS {
        let (fixture, dir) = start(resolver);
        let fifo = fixture.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("fifo");
        let _socket =
            std::os::unix::net::UnixListener::bind(fixture.path().join("socket")).expect("socket");
        let dir = std::sync::Arc::new(dir);
        for name in ["fifo", "socket"] {
            let for_read = dir.clone();
            let read = at_once(move || for_read.open_read(&plain(name)));
            assert!(
                matches!(read, Err(FileFailure::NotRegular)),
                "{resolver:?} {name}: {read:?}"
            );
            let for_append = dir.clone();
            let append = at_once(move || for_append.open_append(&plain(name)));
            assert!(
                matches!(append, Err(FileFailure::NotRegular)),
                "{resolver:?} {name}: {append:?}"
            );
            let replace = dir.begin_replace(&plain(name));
            assert!(
                matches!(replace, Err(FileFailure::NotRegular)),
                "{resolver:?} {name}"
            );
        }
        // A FIFO with a reader can be opened for writing and must be rejected nevertheless.
        let _reader = File::from(
            rustix::fs::open(&fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
                .expect("reader"),
        );
        assert!(matches!(
            dir.open_append(&plain("fifo")),
            Err(FileFailure::NotRegular)
        ));
    }
    let devices = SafeDir::open_trusted(Path::new("/dev"), Resolver::detect()).expect("devices");
    assert!(matches!(
        devices.open_read(&plain("null")),
        Err(FileFailure::NotRegular)
    ));
}

#[test]
fn hard_linked_file_is_not_written() {
    for resolver in RESOLVERS {
        let (fixture, dir) = start(resolver);
        std::fs::write(fixture.path().join("one"), "kept").expect("write");
        std::fs::hard_link(fixture.path().join("one"), fixture.path().join("two")).expect("link");
        assert!(matches!(
            dir.begin_replace(&plain("two")),
            Err(FileFailure::HardLinked)
        ));
        assert!(matches!(
            dir.open_append(&plain("two")),
            Err(FileFailure::HardLinked)
        ));
        assert!(dir.open_read(&plain("two")).is_ok());
        assert_eq!(
            std::fs::read_to_string(fixture.path().join("one")).expect("read"),
            "kept"
        );
    }
}

#[test]
fn replacement_is_atomic_and_retains_mode() {
    let (fixture, dir) = start(Resolver::detect());
    let script = fixture.path().join("run.sh");
    std::fs::write(&script, "old").expect("write");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o750)).expect("mode");
    let mut pending = dir.begin_replace(&plain("run.sh")).expect("begin");
    pending.write(b"new ").expect("write");
    pending.write(b"content").expect("write");
    assert_eq!(std::fs::read_to_string(&script).expect("read"), "old");
    pending.commit(Durability::Synced).expect("commit");
    assert_eq!(
        std::fs::read_to_string(&script).expect("read"),
        "new content"
    );
    assert_eq!(
        std::fs::metadata(&script).expect("stat").mode() & 0o777,
        0o750
    );
    assert_eq!(std::fs::read_dir(fixture.path()).expect("list").count(), 1);
}

#[test]
fn dropped_replacement_is_deleted() {
    let (fixture, dir) = start(Resolver::detect());
    let mut pending = dir.begin_replace(&plain("new.txt")).expect("begin");
    pending.write(b"half").expect("write");
    drop(pending);
    assert_eq!(std::fs::read_dir(fixture.path()).expect("list").count(), 0);
}

#[test]
fn commit_rejects_target_turned_directory_or_link() {
    let (fixture, dir) = start(Resolver::detect());
    let pending = dir.begin_replace(&plain("a")).expect("begin");
    std::fs::create_dir(fixture.path().join("a")).expect("dir");
    assert!(matches!(
        pending.commit(Durability::Cached),
        Err(FileFailure::IsDirectory)
    ));
    let pending = dir.begin_replace(&plain("b")).expect("begin");
    symlink("elsewhere", fixture.path().join("b")).expect("link");
    assert!(matches!(
        pending.commit(Durability::Cached),
        Err(FileFailure::Symlink)
    ));
    assert_eq!(std::fs::read_dir(fixture.path()).expect("list").count(), 2);
}

#[test]
fn read_only_file_is_not_replaced() {
    let (fixture, dir) = start(Resolver::detect());
    std::fs::write(fixture.path().join("a"), "kept").expect("write");
    std::fs::set_permissions(
        fixture.path().join("a"),
        std::fs::Permissions::from_mode(0o444),
    )
    .expect("mode");
    assert!(matches!(
        dir.begin_replace(&plain("a")),
        Err(FileFailure::Permission)
    ));
}

#[test]
fn entries_respect_limit_and_report_kind() {
    let (fixture, dir) = start(Resolver::detect());
    std::fs::create_dir(fixture.path().join("d")).expect("dir");
    std::fs::write(fixture.path().join("f"), "x").expect("file");
    symlink("/", fixture.path().join("l")).expect("link");
    let (mut entries, more) = dir.entries(10).expect("entries");
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let kinds: Vec<NodeKind> = entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(
        kinds,
        [NodeKind::Directory, NodeKind::File, NodeKind::Other]
    );
    assert!(!more);
    let (entries, more) = dir.entries(2).expect("entries");
    assert_eq!((entries.len(), more), (2, true));
}

#[test]
fn stat_does_not_follow_links() {
    for resolver in RESOLVERS {
        let (fixture, dir) = start(resolver);
        std::fs::write(fixture.path().join("f"), "four").expect("file");
        symlink("f", fixture.path().join("l")).expect("link");
        assert_eq!(dir.stat(&plain("f")).expect("stat").st_size, 4);
        assert!(matches!(dir.stat(&plain("l")), Err(FileFailure::Symlink)));
        assert!(matches!(dir.stat(&plain("x")), Err(FileFailure::NotFound)));
        assert!(dir.stat(&plain("")).is_ok());
    }
}
