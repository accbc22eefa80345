//! Opening beneath a handle, with the kernel's help and without it.

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
    let place = tempfile::tempdir().expect("temporary directory");
    let dir = SafeDir::open_trusted(place.path(), resolver).expect("open");
    (place, dir)
}

/// Fails instead of hanging when the operation blocks.
fn at_once<T: Send + 'static>(operation: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(operation()));
    result
        .recv_timeout(Duration::from_secs(20))
        .expect("the operation must not block")
}

#[test]
fn this_system_has_a_working_resolver() {
    let (place, _) = start(Resolver::Walk);
    std::fs::write(place.path().join("a"), "x").expect("write");
    let dir = SafeDir::open_trusted(place.path(), Resolver::detect()).expect("open");
    assert!(dir.open_read(&plain("a")).is_ok());
}

#[test]
fn missing_directories_are_made_and_existing_ones_kept() {
    for resolver in RESOLVERS {
        let (place, dir) = start(resolver);
        dir.create_dirs(&plain("a/b/c"), SHARED_DIR).expect("new");
        std::fs::write(place.path().join("a/b/kept"), "x").expect("write");
        dir.create_dirs(&plain("a/b/d"), PRIVATE_DIR)
            .expect("half new");
        dir.create_dirs(&plain("a/b"), SHARED_DIR).expect("old");
        assert!(place.path().join("a/b/kept").is_file());
        let mode = std::fs::metadata(place.path().join("a/b/d"))
            .expect("made")
            .mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[test]
fn each_obstacle_has_its_own_fault() {
    for resolver in RESOLVERS {
        let (place, dir) = start(resolver);
        std::fs::create_dir(place.path().join("d")).expect("dir");
        std::fs::write(place.path().join("f"), "x").expect("file");
        symlink("d", place.path().join("to-d")).expect("link");
        symlink("f", place.path().join("to-f")).expect("link");
        std::fs::write(place.path().join("d/inner"), "x").expect("file");
        let read = |raw: &str| dir.open_read(&plain(raw)).expect_err("must fail");
        assert!(matches!(read("nothing"), Fault::NotFound), "{resolver:?}");
        assert!(
            matches!(read("nothing/at/all"), Fault::NotFound),
            "{resolver:?}"
        );
        assert!(matches!(read("d"), Fault::IsDirectory), "{resolver:?}");
        assert!(matches!(read(""), Fault::IsDirectory), "{resolver:?}");
        assert!(
            matches!(read("f/inner"), Fault::NotDirectory),
            "{resolver:?}"
        );
        assert!(matches!(read("to-f"), Fault::Symlink), "{resolver:?}");
        assert!(matches!(read("to-d/inner"), Fault::Symlink), "{resolver:?}");
        let enter = |raw: &str| dir.open_dir(&plain(raw)).expect_err("must fail");
        assert!(matches!(enter("to-d"), Fault::Symlink), "{resolver:?}");
        assert!(matches!(enter("f"), Fault::NotDirectory), "{resolver:?}");
        let create = dir
            .create_dirs(&plain("to-d/new"), SHARED_DIR)
            .expect_err("must fail");
        assert!(matches!(create, Fault::Symlink), "{resolver:?}");
        assert!(!place.path().join("d/new").exists());
    }
}

#[test]
fn fifos_sockets_and_devices_are_refused_without_waiting() {
    for resolver in RESOLVERS {
        let (place, dir) = start(resolver);
        let fifo = place.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("fifo");
        let _socket =
            std::os::unix::net::UnixListener::bind(place.path().join("socket")).expect("socket");
        let dir = std::sync::Arc::new(dir);
        for name in ["fifo", "socket"] {
            let for_read = dir.clone();
            let read = at_once(move || for_read.open_read(&plain(name)));
            assert!(
                matches!(read, Err(Fault::NotRegular)),
                "{resolver:?} {name}: {read:?}"
            );
            let for_append = dir.clone();
            let append = at_once(move || for_append.open_append(&plain(name)));
            assert!(
                matches!(append, Err(Fault::NotRegular)),
                "{resolver:?} {name}: {append:?}"
            );
            let replace = dir.begin_replace(&plain(name));
            assert!(
                matches!(replace, Err(Fault::NotRegular)),
                "{resolver:?} {name}"
            );
        }
        // A FIFO that has a reader can be opened for writing: it is refused all the same.
        let _reader = File::from(
            rustix::fs::open(&fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
                .expect("reader"),
        );
        assert!(matches!(
            dir.open_append(&plain("fifo")),
            Err(Fault::NotRegular)
        ));
    }
    let devices = SafeDir::open_trusted(Path::new("/dev"), Resolver::detect()).expect("devices");
    assert!(matches!(
        devices.open_read(&plain("null")),
        Err(Fault::NotRegular)
    ));
}

#[test]
fn a_file_with_a_second_name_is_not_written_to() {
    for resolver in RESOLVERS {
        let (place, dir) = start(resolver);
        std::fs::write(place.path().join("one"), "kept").expect("write");
        std::fs::hard_link(place.path().join("one"), place.path().join("two")).expect("link");
        assert!(matches!(
            dir.begin_replace(&plain("two")),
            Err(Fault::HardLinked)
        ));
        assert!(matches!(
            dir.open_append(&plain("two")),
            Err(Fault::HardLinked)
        ));
        assert!(dir.open_read(&plain("two")).is_ok());
        assert_eq!(
            std::fs::read_to_string(place.path().join("one")).expect("read"),
            "kept"
        );
    }
}

#[test]
fn a_replacement_appears_whole_and_keeps_the_mode() {
    let (place, dir) = start(Resolver::detect());
    let script = place.path().join("run.sh");
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
    assert_eq!(std::fs::read_dir(place.path()).expect("list").count(), 1);
}

#[test]
fn an_abandoned_replacement_leaves_nothing() {
    let (place, dir) = start(Resolver::detect());
    let mut pending = dir.begin_replace(&plain("new.txt")).expect("begin");
    pending.write(b"half").expect("write");
    drop(pending);
    assert_eq!(std::fs::read_dir(place.path()).expect("list").count(), 0);
}

#[test]
fn a_target_that_became_a_directory_or_a_link_is_left_alone() {
    let (place, dir) = start(Resolver::detect());
    let pending = dir.begin_replace(&plain("a")).expect("begin");
    std::fs::create_dir(place.path().join("a")).expect("dir");
    assert!(matches!(
        pending.commit(Durability::Cached),
        Err(Fault::IsDirectory)
    ));
    let pending = dir.begin_replace(&plain("b")).expect("begin");
    symlink("elsewhere", place.path().join("b")).expect("link");
    assert!(matches!(
        pending.commit(Durability::Cached),
        Err(Fault::Symlink)
    ));
    assert_eq!(std::fs::read_dir(place.path()).expect("list").count(), 2);
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let (place, dir) = start(Resolver::detect());
    std::fs::write(place.path().join("a"), "kept").expect("write");
    std::fs::set_permissions(
        place.path().join("a"),
        std::fs::Permissions::from_mode(0o444),
    )
    .expect("mode");
    assert!(matches!(
        dir.begin_replace(&plain("a")),
        Err(Fault::Permission)
    ));
}

#[test]
fn entries_are_counted_and_named_with_their_kind() {
    let (place, dir) = start(Resolver::detect());
    std::fs::create_dir(place.path().join("d")).expect("dir");
    std::fs::write(place.path().join("f"), "x").expect("file");
    symlink("/", place.path().join("l")).expect("link");
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
fn stat_describes_without_following() {
    for resolver in RESOLVERS {
        let (place, dir) = start(resolver);
        std::fs::write(place.path().join("f"), "four").expect("file");
        symlink("f", place.path().join("l")).expect("link");
        assert_eq!(dir.stat(&plain("f")).expect("stat").st_size, 4);
        assert!(matches!(dir.stat(&plain("l")), Err(Fault::Symlink)));
        assert!(matches!(dir.stat(&plain("x")), Err(Fault::NotFound)));
        assert!(dir.stat(&plain("")).is_ok());
    }
}
