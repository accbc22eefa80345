//! Links placed in the workspace before and during an operation.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::blocking_files::{Occurrences, WriteMode};
use super::file_error::{FileError, FileFailure};
use super::line_range::LineRange;
use super::pending_file::Durability;
use super::safe_fs::Resolver;
use super::test_support::{CANARY, RESOLVERS, TestHome, work};
use super::virtual_paths::VirtualPath;

fn is_refused<T>(result: Result<T, FileError>) -> bool {
    matches!(
        result,
        Err(FileError::At {
            fault: FileFailure::Symlink,
            ..
        })
    )
}

#[test]
fn every_operation_rejects_planted_link() {
    for resolver in RESOLVERS {
        let fixture = TestHome::with_roots(resolver);
        let files = fixture.files.blocking();
        std::fs::create_dir(fixture.workspace().join("sub")).expect("dir");
        let plant = |target: &std::path::Path, name: &str| {
            symlink(target, fixture.workspace().join(name)).expect("link");
        };
        plant(&fixture.outside().join("secret.txt"), "file");
        plant(&fixture.outside(), "dir");
        plant(
            std::path::Path::new("../../../../../../../outside"),
            "sub/relative",
        );
        plant(std::path::Path::new("/proc/self/root"), "magic");
        plant(&fixture.outside().join("new.txt"), "dangling");
        plant(std::path::Path::new("loop"), "loop");

        for name in [
            "file",
            "dangling",
            "loop",
            "dir/secret.txt",
            "sub/relative/secret.txt",
            "magic/etc/passwd",
        ] {
            let path = work(name);
            let context = format!("{resolver:?} {name}");
            assert!(
                is_refused(files.read_text(&path, LineRange::ALL)),
                "read {context}"
            );
            assert!(is_refused(files.open_read(&path)), "open {context}");
            assert!(is_refused(files.stat(&path)), "stat {context}");
            assert!(
                is_refused(files.write_text(&path, "x", WriteMode::Replace)),
                "write {context}"
            );
            assert!(
                is_refused(files.write_text(&path, "x", WriteMode::Append)),
                "append {context}"
            );
            assert!(
                is_refused(files.write_bytes(&path, b"x", Durability::Cached)),
                "bytes {context}"
            );
            assert!(
                is_refused(files.replace(&path, "canary", "x", Occurrences::All)),
                "replace {context}"
            );
            assert!(is_refused(files.begin_write(&path)), "begin {context}");
        }
        for name in ["dir", "sub/relative", "magic", "loop"] {
            assert!(
                is_refused(files.list(&work(name), 2)),
                "list {resolver:?} {name}"
            );
            assert!(
                is_refused(files.read_dir(&work(name))),
                "read_dir {resolver:?} {name}"
            );
            assert!(is_refused(files.write_text(
                &work(&format!("{name}/a/b")),
                "x",
                WriteMode::Replace
            )));
        }
        let listing = files.list(&work(""), 2).expect("list").lines.join("\n");
        assert!(
            listing.contains("/dir\n") && !listing.contains("secret"),
            "{listing}"
        );
        assert!(
            files
                .remove_file(&work("file"))
                .expect("a link is removed itself")
        );
        assert!(is_refused(files.remove_file(&work("dir/secret.txt"))));
        fixture.assert_outside_is_untouched();
    }
}

#[test]
fn root_replaced_by_link_is_rejected() {
    for resolver in RESOLVERS {
        let fixture = TestHome::with_roots(resolver);
        std::fs::remove_dir(fixture.workspace()).expect("remove");
        symlink(fixture.outside(), fixture.workspace()).expect("link");
        let files = fixture.files.blocking();
        assert!(is_refused(
            files.read_text(&work("secret.txt"), LineRange::ALL)
        ));
        assert!(is_refused(files.write_text(
            &work("new.txt"),
            "x",
            WriteMode::Replace
        )));
        assert!(is_refused(files.list(&work(""), 2)));
        fixture.assert_outside_is_untouched();
    }
}

/// Swaps a directory and a link to the outside as fast as possible while `attempt` runs `tries`
/// times, and longer until enough swaps have happened.
fn while_flipping(fixture: &TestHome, tries: u64, mut attempt: impl FnMut()) {
    const MIN_FLIPS: u64 = 1000;
    let directory = rustix::fs::open(
        fixture.workspace(),
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY,
        rustix::fs::Mode::empty(),
    )
    .expect("workspace");
    let (stop, flips) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let swap = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(&directory, "real", &directory, "other", swap)
                    .expect("swap");
                flips.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Also after a panic: a test that finds a leak must terminate.
        let _stop = StopOnDrop(&stop);
        let mut tried = 0;
        while tried < tries || (flips.load(Ordering::Relaxed) < MIN_FLIPS && tried < tries * 100) {
            attempt();
            tried += 1;
        }
    });
    assert!(flips.into_inner() >= MIN_FLIPS, "the race was not run");
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn racing_fixture(resolver: Resolver) -> TestHome {
    let fixture = TestHome::with_roots(resolver);
    std::fs::create_dir(fixture.workspace().join("real")).expect("dir");
    std::fs::write(fixture.workspace().join("real/secret.txt"), "inside").expect("write");
    symlink(fixture.outside(), fixture.workspace().join("other")).expect("link");
    fixture
}

#[test]
fn link_swap_during_read_leaks_nothing() {
    for resolver in RESOLVERS {
        let fixture = racing_fixture(resolver);
        let files = fixture.files.blocking();
        let secret = work("real/secret.txt");
        let (mut inside, mut refused) = (0_u64, 0_u64);
        while_flipping(&fixture, 20_000, || match files.open_read(&secret) {
            Ok((mut file, _)) => {
                let mut content = String::new();
                file.read_to_string(&mut content).expect("readable");
                assert_ne!(content, CANARY);
                assert_eq!(content, "inside");
                inside += 1;
            }
            Err(FileError::At {
                fault: FileFailure::Symlink | FileFailure::NotDirectory,
                ..
            }) => refused += 1,
            Err(other) => panic!("{other}"),
        });
        assert!(inside + refused >= 20_000);
    }
}

#[test]
fn link_swap_during_listing_leaks_nothing() {
    for resolver in RESOLVERS {
        let fixture = racing_fixture(resolver);
        std::fs::rename(
            fixture.workspace().join("real/secret.txt"),
            fixture.workspace().join("real/inside.txt"),
        )
        .expect("rename");
        let files = fixture.files.blocking();
        let (root, real) = (work(""), work("real"));
        while_flipping(&fixture, 2_000, || {
            for listing in [files.list(&root, 2), files.list(&real, 2)] {
                let lines = listing.map(|listing| listing.lines).unwrap_or_default();
                assert!(
                    lines.iter().all(|line| !line.contains("secret")),
                    "{lines:?}"
                );
            }
        });
    }
}

#[test]
fn link_swap_during_write_changes_nothing_outside() {
    for resolver in RESOLVERS {
        let fixture = racing_fixture(resolver);
        let files = fixture.files.blocking();
        let write = |path: &VirtualPath, mode| match files.write_text(path, "overwritten", mode) {
            Ok(()) | Err(FileError::At { .. }) => {}
            Err(other) => panic!("{other}"),
        };
        let (secret, fresh, nested) = (
            work("real/secret.txt"),
            work("real/fresh.txt"),
            work("real/new/dir/fresh.txt"),
        );
        while_flipping(&fixture, 1_000, || {
            write(&secret, WriteMode::Replace);
            write(&secret, WriteMode::Append);
            write(&fresh, WriteMode::Replace);
            write(&nested, WriteMode::Replace);
            let _ = files.replace(&secret, "o", "0", Occurrences::First);
            let _ = files.remove_file(&fresh);
        });
        fixture.assert_outside_is_untouched();
    }
}
