//! Reports of created, changed and deleted files, their diffs and their limits.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::report::ChangeReport;
use super::snapshot::FileSnapshot;
use super::*;
use crate::sandbox::blocking_files::FileLimits;
use crate::sandbox::files::FileHome;
use crate::sandbox::test_support::thread_id;
use crate::sandbox::thread_files::ThreadFiles;
use deerflow_core::ids::RunId;

/// A thread's workspace on the disk.
struct Bench {
    home: FileHome,
    files: ThreadFiles,
    user_data: PathBuf,
    limits: ChangeLimits,
    _directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self::with(ChangeLimits::default())
    }

    fn with(limits: ChangeLimits) -> Self {
        let directory = tempfile::tempdir().expect("temporary directory");
        let user_data = directory.path().join("users/ann/threads/t-1/user-data");
        fs::create_dir_all(user_data.join("workspace")).expect("folders");
        let home = FileHome::new(directory.path(), FileLimits::default());
        Self {
            files: home.thread("ann", &thread_id("t-1")),
            home,
            user_data,
            limits,
            _directory: directory,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.user_data.join("workspace").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, content).expect("written");
    }

    fn before(&self) -> FileSnapshot {
        FileSnapshot::before(self.files.blocking().dirs(), self.limits, 1 << 20)
    }

    fn report(&self, before: &FileSnapshot) -> Value {
        let after = before.after(self.files.blocking().dirs());
        json!(ChangeReport::of(before, &after))
    }
}

/// Values of a field, by file.
fn all<'a>(report: &'a Value, field: &str) -> Vec<&'a Value> {
    let files = report["files"].as_array().expect("files");
    files.iter().map(|file| &file[field]).collect()
}

#[test]
fn report_has_created_changed_and_deleted_files() {
    let bench = Bench::new();
    bench.write("a/changed.md", "one\ntwo\n");
    bench.write("deleted.md", "gone\n");
    bench.write("same.md", "same\n");
    bench.write(".git/HEAD", "x");
    let before = bench.before();
    bench.write("a/changed.md", "one\nthree\nfour\n");
    bench.write("new.md", "new\n");
    bench.write("same.md", "same\n");
    bench.write(".git/HEAD", "y");
    fs::remove_file(bench.path("deleted.md")).expect("removed");
    let report = bench.report(&before);
    let summary = json!({
        "created": 1, "modified": 1, "deleted": 1, "symlink_created": 0,
        "additions": 3, "deletions": 2, "truncated": false,
    });
    assert_eq!(report["summary"], summary);
    let path = |name: &str| format!("/mnt/user-data/workspace/{name}");
    let paths = [path("new.md"), path("a/changed.md"), path("deleted.md")];
    assert_eq!(all(&report, "path"), paths.each_ref());
    assert_eq!(
        all(&report, "status"),
        ["created", "modified", "deleted"],
        "a file that was written with the same content is unchanged"
    );
    assert_eq!(
        report["files"][1]["diff"],
        "--- a/mnt/user-data/workspace/a/changed.md\n+++ b/mnt/user-data/workspace/a/changed.md\n\
         @@ -1,2 +1,3 @@\n one\n-two\n+three\n+four\n"
    );
    assert_eq!(
        all(&report, "size_before"),
        [&json!(null), &json!(8), &json!(5)]
    );
    assert_eq!(
        all(&report, "size_after"),
        [&json!(4), &json!(15), &json!(null)]
    );
    assert_eq!(report["limits"]["max_total_diff_bytes"], 1_048_576);
}

#[test]
fn unchanged_files_have_no_report() {
    let bench = Bench::new();
    bench.write("a", "text");
    let before = bench.before();
    assert_eq!(bench.report(&before), Value::Null);
}

#[test]
fn links_binaries_secrets_and_large_files_have_no_diff() {
    let bench = Bench::with(ChangeLimits {
        max_file_bytes_for_diff: 100,
        ..ChangeLimits::default()
    });
    let secret = tempfile::NamedTempFile::new().expect("a file");
    fs::write(secret.path(), "s3cret").expect("written");
    let before = bench.before();
    bench.write("b.bin", [0, 159, 146, 150]);
    bench.write("c/.env", "KEY=s3cret");
    bench.write("d.txt", "x\n".repeat(200));
    symlink(secret.path(), bench.path("link")).expect("a link");
    let report = bench.report(&before);
    assert!(!report.to_string().contains("s3cret"), "{report}");
    assert_eq!(
        all(&report, "diff_unavailable_reason"),
        ["binary", "sensitive", "large", "symlink"]
    );
    assert_eq!(all(&report, "diff"), [""; 4]);
    assert_eq!(
        report["files"][3]["symlink_target_after"],
        json!(secret.path())
    );
    let counts = |name: &str| report["summary"][name].clone();
    assert_eq!(
        (counts("created"), counts("symlink_created")),
        (json!(3), json!(1))
    );
}

#[test]
fn report_is_bounded_by_its_limits() {
    let bench = Bench::with(ChangeLimits {
        max_files: 2,
        max_total_diff_bytes: 150,
        ..ChangeLimits::default()
    });
    let before = bench.before();
    for name in ["a", "b", "c"] {
        bench.write(name, "line\n".repeat(9));
    }
    let report = bench.report(&before);
    let summary = &report["summary"];
    assert_eq!(
        (&summary["created"], &summary["truncated"]),
        (&json!(3), &json!(true))
    );
    let diffs = all(&report, "diff");
    assert_eq!(diffs.len(), 2);
    let bytes: usize = diffs
        .iter()
        .filter_map(|diff| diff.as_str())
        .map(str::len)
        .sum();
    assert!(bytes <= 150, "{bytes}");
    assert_eq!(all(&report, "diff_truncated"), [false, true]);
}

#[test]
fn partial_scan_compares_only_what_it_visited() {
    let bench = Bench::with(ChangeLimits {
        max_scanned_files: 3,
        ..ChangeLimits::default()
    });
    for name in ["b", "d", "f", "h"] {
        bench.write(name, "x\n");
    }
    let before = bench.before();
    bench.write("a", "created before the end of the first scan\n");
    bench.write("b", "changed\n");
    bench.write("z", "beyond both scans\n");
    let report = bench.report(&before);
    let names = ["a", "b"].map(|name| format!("/mnt/user-data/workspace/{name}"));
    assert_eq!(all(&report, "path"), names.each_ref());
    assert_eq!(report["summary"]["truncated"], true);
}

#[test]
fn unreadable_directory_does_not_count_as_deleted() {
    let bench = Bench::new();
    bench.write("closed/a", "x\n");
    bench.write("open", "x\n");
    let mut before = bench.before();
    bench.write("open", "y\n");
    // As if the second scan could not enter the directory; the tests may run as root.
    let mut after = before.after(bench.files.blocking().dirs());
    let closed = location::Location::inside(crate::sandbox::Root::Workspace, "", "closed");
    after.nodes.retain(|location, _| !location.is_in(&closed));
    after.skipped.push(closed.clone());
    let report = json!(ChangeReport::of(&before, &after));
    assert_eq!(all(&report, "path"), ["/mnt/user-data/workspace/open"]);
    // A file in a directory that only the second scan could enter is not created.
    before.nodes.retain(|location, _| !location.is_in(&closed));
    before.skipped.push(closed);
    let report = bench.report(&before);
    assert_eq!(all(&report, "path"), ["/mnt/user-data/workspace/open"]);
}

#[test]
fn hostile_nodes_do_not_stop_the_scan() {
    let bench = Bench::new();
    let before = bench.before();
    let name = "line\n+++ b/other\nrest.txt";
    bench.write(name, "text\n");
    bench.write("\u{202e}.txt", "text\n");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe");
    symlink("/", bench.path("root")).expect("a link");
    symlink(".", bench.path("loop")).expect("a link");
    bench.write("unreadable", "text\n");
    fs::set_permissions(bench.path("unreadable"), fs::Permissions::from_mode(0o000)).expect("mode");
    (0..40).fold(bench.path("deep"), |above, _| {
        fs::create_dir_all(&above).expect("a folder");
        fs::write(above.join("f"), "x\n").expect("written");
        above.join("d")
    });
    let report = bench.report(&before);
    let paths = all(&report, "path");
    let has = |name: &str| paths.contains(&&json!(format!("/mnt/user-data/workspace/{name}")));
    assert!(
        has(name) && has("root") && has("loop") && has("unreadable"),
        "{paths:?}"
    );
    assert!(!has("pipe"));
    assert_eq!(report["summary"]["truncated"], true, "deep directories");
    let diffs = all(&report, "diff");
    let lines = diffs
        .iter()
        .filter_map(|diff| diff.as_str())
        .flat_map(str::lines);
    assert!(
        lines
            .into_iter()
            .all(|line| !line.starts_with("+++ b/other"))
    );
}

#[tokio::test]
async fn changes_are_those_since_the_first_snapshot() {
    let bench = Bench::new();
    let run = RunId::parse("r-1").expect("a valid id");
    let snapshots = bench.home.snapshots();
    assert_eq!(snapshots.changes(&run).await.expect("compared"), None);
    snapshots
        .take_once(&run, &bench.files)
        .await
        .expect("taken");
    bench.write("a", "x\n");
    snapshots
        .take_once(&run, &bench.files)
        .await
        .expect("taken");
    bench.write("b", "y\n");
    let report = json!(snapshots.changes(&run).await.expect("compared"));
    assert_eq!(report["summary"]["created"], 2);
    let again = snapshots.changes(&run).await.expect("compared");
    assert_eq!(again, None, "the snapshot was removed");
    snapshots
        .take_once(&run, &bench.files)
        .await
        .expect("taken");
    snapshots.remove(&run);
    bench.write("c", "z\n");
    let removed = snapshots.changes(&run).await.expect("compared");
    assert_eq!(removed, None);
}
