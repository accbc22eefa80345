//! A gateway whose disk is full or whose database is removed: `/ready` reports it, and nothing is
//! acknowledged that would be lost.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use deerflow_tests::gateway::{GatewayOptions, deerflow_binary};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{HttpResponse, Rig, body, config, text, until};

/// Size of the disk in MiB, and the bytes of it that are held in reserve.
const DISK_MIB: u64 = 80;
const RESERVE: u64 = 32 << 20;

/// Waits until `/ready` answers with this status and reason. Its checks are cached for up to a
/// second.
async fn until_ready(rig: &Rig, status: u16, reason: Option<&str>) {
    until("readiness", async || {
        let answer = rig.get("/ready").await;
        (answer.status == status && answer.json()["reason"] == json!(reason)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn removed_database_rejects_new_work() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let data = rig.gateway.home().join(".deer-flow/data");
    let (file, elsewhere) = (data.join("deerflow.db"), data.join("elsewhere"));
    until_ready(&rig, 200, None).await;

    fs::rename(&file, &elsewhere).expect("moved");
    let refused = rig.post("/api/threads", &json!({"metadata": {}})).await;
    assert!(
        text(&refused.refusal(503)).contains("database file was removed"),
        "{}",
        refused.text
    );
    rig.post(&format!("/api/threads/{thread}/runs"), &body("then say x"))
        .await
        .refusal(503);
    rig.post("/threads", &json!({})).await.refusal(503);
    until_ready(&rig, 503, Some("database file was removed")).await;
    assert_eq!(rig.get("/health").await.ok()["status"], "unhealthy");

    fs::copy(&elsewhere, &file).expect("copied");
    rig.post("/api/threads", &json!({"metadata": {}}))
        .await
        .refusal(503);
    until_ready(&rig, 503, Some("database file was replaced")).await;

    fs::rename(&elsewhere, &file).expect("moved back");
    until_ready(&rig, 200, None).await;
    let run = rig.run(&thread, &body("then say x")).await;
    assert_eq!(rig.get_run(&thread, &run.run).await["status"], "success");
}

#[tokio::test]
async fn removed_data_folder_is_not_ready() {
    let rig = Rig::with("database: {backend: memory}").await;
    until_ready(&rig, 200, None).await;
    let home = rig.gateway.home().join(".deer-flow");
    fs::rename(&home, rig.gateway.home().join("elsewhere")).expect("moved");
    until_ready(&rig, 503, Some("data folder was removed")).await;
}

/// Returns the `unshare` command that lets a process mount a small disk of its own, if this machine
/// permits it.
fn own_mounts() -> Option<&'static str> {
    let folder = tempfile::tempdir().expect("folder");
    ["unshare --mount", "unshare --map-root-user --mount"]
        .into_iter()
        .find(|unshare| {
            let script = format!(
                "{unshare} sh -c 'mount -t tmpfs -o size=1m tmpfs {}'",
                folder.path().display()
            );
            Command::new("/bin/sh")
                .args(["-c", &script])
                .output()
                .is_ok_and(|tried| tried.status.success())
        })
}

/// Starts a gateway whose data folder is a small disk. The returned path leads to it from outside
/// of the mount namespace.
async fn on_small_disk(unshare: &str, home: &Path) -> (Rig, PathBuf) {
    let binary = deerflow_binary().expect("built");
    fs::create_dir(home.join(".deer-flow")).expect("folder");
    let mount = format!(
        "mount -t tmpfs -o size={DISK_MIB}m tmpfs \"$DEER_FLOW_HOME\" && exec \"{}\" serve",
        binary.display()
    );
    fs::write(
        home.join("serve"),
        format!("exec {unshare} sh -c '{mount}'"),
    )
    .expect("script");
    let options = |base_url: &str| GatewayOptions {
        home: Some(home.to_owned()),
        ..GatewayOptions::new("/bin/sh".into(), config(base_url, ""))
    };
    let rig = Rig::launched(options).await;
    let pid = rig.gateway.pid().expect("running");
    let disk = PathBuf::from(format!(
        "/proc/{pid}/root{}",
        home.join(".deer-flow").display()
    ));
    (rig, disk)
}

/// Fills the disk completely with one file.
fn fill(file: &Path) {
    let mut file = File::create(file).expect("made");
    for chunk in [1 << 20, 4096, 1] {
        let zeros = vec![0; chunk];
        while file.write_all(&zeros).is_ok() {}
    }
}

fn allocated(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.blocks() * 512)
}

#[tokio::test]
async fn full_disk_accepts_deletes_and_run_ends_and_recovers() {
    let Some(unshare) = own_mounts() else {
        eprintln!(
            "private mounts are not permitted on this machine: a full disk cannot be simulated"
        );
        return;
    };
    let home = tempfile::tempdir().expect("home");
    let (rig, disk) = on_small_disk(unshare, home.path()).await;
    let reserve = disk.join("data/deerflow.reserve");
    until_ready(&rig, 200, None).await;
    assert_eq!(allocated(&reserve), RESERVE);
    let over = rig.run_prompt("then say x").await;
    let thread = rig.thread().await;
    let run = rig
        .background(&thread, &body("[[hold 0]] then say kept"))
        .await;
    until("the active run", async || {
        (rig.get_run(&thread, &run).await["status"] == "running").then_some(())
    })
    .await;

    fill(&disk.join("filler"));
    let create = async || {
        rig.post(
            "/api/threads",
            &json!({"metadata": {"text": "x".repeat(60_000)}}),
        )
        .await
    };
    until("a refusal", async || {
        (create().await.status != 200).then_some(())
    })
    .await;
    assert!(text(&create().await.refusal(507)).contains("disk full"));
    until_ready(&rig, 503, Some("disk full")).await;
    assert_eq!(allocated(&reserve), 0);

    let form = "--x\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.txt\"\r\n\r\nhello\r\n--x--\r\n";
    let upload = rig.request(Method::POST, &format!("/api/threads/{thread}/uploads"));
    let upload = upload
        .header("content-type", "multipart/form-data; boundary=x")
        .body(form);
    assert!(text(&HttpResponse::of(upload).await.refusal(507)).contains("disk full"));

    // Accepted work finishes, and requests that free space are accepted.
    rig.model.release();
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
    assert_eq!(
        rig.delete(&format!("/api/threads/{}", over.thread))
            .await
            .status,
        200
    );
    rig.get(&format!("/api/threads/{}", over.thread))
        .await
        .refusal(404);
    create().await.refusal(507);
    until_ready(&rig, 503, Some("disk full")).await;

    fs::remove_file(disk.join("filler")).expect("removed");
    until_ready(&rig, 200, None).await;
    assert_eq!(create().await.status, 200);
    assert_eq!(allocated(&reserve), RESERVE);
    let last: Value = rig
        .get_run(&thread, &rig.run(&thread, &body("then say on")).await.run)
        .await;
    assert_eq!(last["status"], "success");
}
