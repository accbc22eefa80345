//! Races: a thread swaps a path for a link to the outside as fast as it can, while every kind of
//! file access runs.
//!
//! `SECONDS=60` sets the duration of each race; `cargo test .. --nocapture` prints the number of
//! tries.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use deerflow_harness::sandbox::safe_fs::Resolver;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::home::{Home, arguments, assert_discloses_nothing, content};
use crate::support::setting;

/// Minimum number of swaps of a valid race.
const MIN_SWAPS: u64 = 300;

/// Object that is swapped for a link.
#[derive(Debug, Clone, Copy)]
enum Swapped {
    /// The file itself.
    File,
    /// The folder that contains it.
    Folder,
    /// The root above that.
    Root,
}

use Swapped::{File, Folder, Root};

/// File accesses: the tool, the root, the file, and the swapped objects.
const FILE_ACCESSES: &[(&str, &str, &str, &[Swapped])] = &[
    (
        "read_file",
        "/mnt/user-data/workspace",
        "secret.txt",
        &[File, Folder, Root],
    ),
    (
        "read_file",
        "/mnt/skills/public/web",
        "secret.txt",
        &[File, Folder],
    ),
    (
        "write_file",
        "/mnt/user-data/workspace",
        "secret.txt",
        &[File, Folder, Root],
    ),
    (
        "write_file",
        "/mnt/user-data/outputs",
        "new/deep/fresh.txt",
        &[Folder, Root],
    ),
    (
        "append",
        "/mnt/user-data/workspace",
        "secret.txt",
        &[File, Folder, Root],
    ),
    (
        "str_replace",
        "/mnt/user-data/workspace",
        "secret.txt",
        &[File, Folder, Root],
    ),
    (
        "ls",
        "/mnt/user-data/workspace",
        "secret.txt",
        &[Folder, Root],
    ),
    ("ls", "/mnt/skills/public/web", "secret.txt", &[Folder]),
    (
        "glob",
        "/mnt/user-data/workspace",
        "secret.txt",
        &[Folder, Root],
    ),
    (
        "grep",
        "/mnt/user-data/workspace",
        "secret.txt",
        &[File, Folder, Root],
    ),
    (
        "grep",
        "/mnt/skills/public/web",
        "secret.txt",
        &[File, Folder],
    ),
    (
        "view_image",
        "/mnt/user-data/workspace",
        "pic.png",
        &[File, Folder, Root],
    ),
    (
        "view_image",
        "/mnt/skills/public/web",
        "pic.png",
        &[File, Folder],
    ),
    (
        "present_files",
        "/mnt/user-data/outputs",
        "only-outside.txt",
        &[Folder, Root],
    ),
    (
        "list_uploaded_files",
        "/mnt/user-data/uploads",
        "secret.txt",
        &[Folder, Root],
    ),
    ("upload", "/mnt/user-data/uploads", "secret.txt", &[Root]),
    (
        "artifact",
        "/mnt/user-data/outputs",
        "secret.txt",
        &[File, Folder, Root],
    ),
    (
        "artifact",
        "/mnt/user-data/outputs",
        "bag.skill/note.md",
        &[Folder, Root],
    ),
];

/// Result of a race.
#[derive(Debug, Default)]
struct Race {
    tries: u64,
    /// Tries that found the legitimate file.
    met: u64,
    swaps: u64,
}

#[test]
fn path_swap_during_file_access_never_escapes() {
    let lasting =
        Duration::from_millis(setting("SECONDS", 0) * 1_000).max(Duration::from_millis(250));
    let (mut all, mut races) = (Race::default(), 0);
    for resolver in [Resolver::Kernel, Resolver::Walk] {
        for (tool, root, file, kinds) in FILE_ACCESSES {
            for swapped in *kinds {
                let race = run(&Home::new(resolver), tool, root, file, *swapped, lasting);
                println!("{resolver:?} {tool} {root} {file} {swapped:?}: {race:?}");
                races += 1;
                all = Race {
                    tries: all.tries + race.tries,
                    met: all.met + race.met,
                    swaps: all.swaps + race.swaps,
                };
            }
        }
    }
    println!("{races} races: {all:?}, nothing outside was read or written");
    assert!(
        all.met > races && all.met < all.tries,
        "both objects were found: {all:?}"
    );
}

fn run(
    home: &Home,
    tool: &str,
    root: &str,
    file: &str,
    swapped: Swapped,
    lasting: Duration,
) -> Race {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let folder = format!("{root}/real");
    let path = format!("{folder}/{file}");
    let swap = Swap::new(home, swapped, &folder, file);
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut race = Race::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                swap.once();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        // The thread must also end if a try panics, as when a test finds a leak.
        let _stop = StopOnDrop(&stop);
        let begun = Instant::now();
        while begun.elapsed() < lasting || swaps.load(Ordering::Relaxed) < MIN_SWAPS {
            let answer = runtime.block_on(attempt(home, tool, &folder, &path));
            race.tries += 1;
            race.met += u64::from(answer.is_ok());
            let answer = answer.unwrap_or_else(|error| error);
            assert!(
                tool != "present_files" || !answer.contains("are shown"),
                "a file of the outside was presented"
            );
            assert_discloses_nothing(&answer, &path);
        }
    });
    race.swaps = swaps.into_inner();
    home.assert_outside_is_untouched(tool);
    race
}

async fn attempt(home: &Home, tool: &str, folder: &str, path: &str) -> Result<String, String> {
    match tool {
        "upload" => home.upload("secret.txt").await,
        "artifact" => home.artifact(path).await,
        "append" => {
            home.call("write_file", arguments("append", folder, path))
                .await
        }
        _ => home.call(tool, arguments(tool, folder, path)).await,
    }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two objects that alternate under one name.
struct Swap {
    place: PathBuf,
    link_to: PathBuf,
    /// Content of the object if it is a file; a folder is exchanged with a link next to it.
    content: Option<Vec<u8>>,
}

impl Swap {
    fn new(home: &Home, swapped: Swapped, folder: &str, file: &str) -> Self {
        let folder = home.host(folder);
        match swapped {
            File => {
                let link_to = home.outside().join("real").join(file);
                Self {
                    place: folder.join(file),
                    link_to,
                    content: Some(content(file, "inside", 64)),
                }
            }
            Folder => Self::of_folder(folder, home.outside().join("real")),
            Root => Self::of_folder(folder.parent().expect("a root").to_owned(), home.outside()),
        }
    }

    fn of_folder(place: PathBuf, link_to: PathBuf) -> Self {
        symlink(&link_to, sibling(&place)).expect("a link");
        Self {
            place,
            link_to,
            content: None,
        }
    }

    fn once(&self) {
        let sibling = sibling(&self.place);
        let Some(content) = &self.content else {
            renameat_with(CWD, &self.place, CWD, &sibling, RenameFlags::EXCHANGE).expect("a swap");
            return;
        };
        // Both are created again: a tool may have put its own file there.
        symlink(&self.link_to, &sibling).expect("a link");
        fs::rename(&sibling, &self.place).expect("a swap");
        fs::write(&sibling, content).expect("a file");
        fs::rename(&sibling, &self.place).expect("a swap");
    }
}

fn sibling(place: &Path) -> PathBuf {
    place.with_extension("other")
}
