//! Tests of uploads and artifacts.

use super::*;

#[tokio::test]
async fn uploads_get_unique_names_and_are_deleted() {
    let test = TestClient::new();
    std::fs::create_dir(test.folder.path().join("other")).unwrap();
    let paths = [test.put("a.txt", "one"), test.put("other/a.txt", "other")];
    let uploaded = test
        .client
        .upload_files(&test.thread, &paths)
        .await
        .unwrap();
    let [first, second] = &uploaded.files[..] else {
        panic!("{uploaded:?}")
    };
    assert_eq!(
        (
            &*first.filename,
            &*second.filename,
            second.original_filename.as_deref()
        ),
        ("a.txt", "a_1.txt", Some("a.txt"))
    );
    assert_eq!(
        std::fs::read_to_string(&second.path).unwrap(),
        "other",
        "paths are host paths"
    );
    assert_eq!(second.virtual_path, "/mnt/user-data/uploads/a_1.txt");
    let listed = test.client.list_uploads(&test.thread).await.unwrap();
    assert_eq!(
        (
            listed.count,
            &listed.files[1].path,
            listed.files[1].extension.as_deref()
        ),
        (2, &second.path, Some(".txt"))
    );
    assert_eq!(
        test.client
            .delete_upload(&test.thread, "a.txt")
            .await
            .unwrap()
            .message,
        "Deleted a.txt"
    );
    let again = test.client.delete_upload(&test.thread, "a.txt").await;
    assert!(
        matches!(again, Err(ClientError::Upload(UploadError::NotFound(_)))),
        "{again:?}"
    );
    for name in [
        "../a_1.txt",
        "/etc/passwd",
        "..",
        "",
        "x/../a_1.txt",
        "a\\b",
    ] {
        let refused = test.client.delete_upload(&test.thread, name).await;
        assert!(
            matches!(refused, Err(ClientError::Upload(UploadError::InvalidName))),
            "{name}: {refused:?}"
        );
    }
    assert_eq!(test.uploads().await, ["a_1.txt"]);
}

#[tokio::test]
async fn upload_with_one_invalid_file_adds_none() {
    let test = TestClient::new();
    let good = test.put("good.txt", "good");
    let upload = async |other: PathBuf| {
        test.client
            .upload_files(&test.thread, &[good.clone(), other])
            .await
            .unwrap_err()
    };
    assert!(matches!(
        upload(test.folder.path().join("none")).await,
        ClientError::NotFound(_)
    ));
    assert!(matches!(
        upload(test.folder.path().to_owned()).await,
        ClientError::NotAFile(_)
    ));
    assert!(matches!(
        upload(good.join("beneath")).await,
        ClientError::NotFound(_)
    ));
    let pipe = test.folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert!(
        matches!(upload(pipe).await, ClientError::NotAFile(_)),
        "opening a pipe without a writer must not block"
    );
    assert!(matches!(
        upload(test.put("large", "12345678901")).await,
        ClientError::Upload(UploadError::FileTooLarge(_))
    ));
    let refused = test
        .client
        .upload_files(&test.thread, &[&good, &good, &good])
        .await;
    assert!(
        matches!(refused, Err(ClientError::Upload(UploadError::TooMany(2)))),
        "{refused:?}"
    );
    let none: [&str; 0] = [];
    let refused = test.client.upload_files(&test.thread, &none).await;
    assert!(
        matches!(refused, Err(ClientError::Upload(UploadError::Nothing))),
        "{refused:?}"
    );
    assert_eq!(test.uploads().await, [""; 0]);
}

#[tokio::test]
async fn artifacts_are_limited_to_the_thread() {
    let test = TestClient::new();
    let write = async |path: &str, text: &str| {
        let path = VirtualPath::parse(path).unwrap();
        test.files()
            .write_text(&path, text.to_owned(), WriteMode::Replace)
            .await
            .unwrap();
    };
    write("/mnt/user-data/outputs/a.html", "<p>").await;
    let get = async |path: &str| test.client.get_artifact(&test.thread, path).await;
    for path in [
        "/mnt/user-data/outputs/a.html",
        "mnt/user-data/outputs/a.html",
    ] {
        assert_eq!(
            get(path).await.unwrap(),
            (b"<p>".to_vec(), "text/html; charset=utf-8".to_owned())
        );
    }
    let secret = test.put("secret", "canary");
    let outputs = test.files().blocking().dirs().host_path(Root::Outputs);
    std::os::unix::fs::symlink(secret, outputs.join("link")).unwrap();
    let why = async |path: &str| match get(path).await {
        Err(ClientError::Artifact(why)) => why,
        other => panic!("{path}: {other:?}"),
    };
    assert!(matches!(
        why("/mnt/user-data/outputs/link").await,
        ArtifactError::Traversal
    ));
    assert!(matches!(
        why("/mnt/user-data/outputs/../../../secret").await,
        ArtifactError::Traversal
    ));
    assert!(matches!(
        why("/etc/passwd").await,
        ArtifactError::OutsideUserData
    ));
    assert!(matches!(
        why("/mnt/user-data/outputs").await,
        ArtifactError::NotAFile(_)
    ));
    assert!(matches!(
        why("/mnt/user-data/outputs/none").await,
        ArtifactError::NotFound(_)
    ));
    assert!(matches!(
        why("/mnt/user-data/outputs/none.skill/SKILL.md").await,
        ArtifactError::NotFound(_)
    ));
    let other = test
        .client
        .get_artifact(
            &ThreadId::parse("other").unwrap(),
            "/mnt/user-data/outputs/a.html",
        )
        .await;
    assert!(
        matches!(
            other,
            Err(ClientError::Artifact(ArtifactError::NotFound(_)))
        ),
        "{other:?}"
    );
}

#[tokio::test]
async fn file_inside_archive_is_an_artifact() {
    let test = TestClient::new();
    let archive = test.put(
        "web.skill",
        compressed(&[("web/SKILL.md", skill_text("web").as_bytes())]),
    );
    std::fs::create_dir_all(test.files().blocking().dirs().host_path(Root::Outputs)).unwrap();
    std::fs::copy(
        archive,
        test.files()
            .blocking()
            .dirs()
            .host_path(Root::Outputs)
            .join("web.skill"),
    )
    .unwrap();
    let get = async |name: &str| {
        test.client
            .get_artifact(
                &test.thread,
                &format!("/mnt/user-data/outputs/web.skill/{name}"),
            )
            .await
    };
    assert_eq!(
        get("SKILL.md").await.unwrap().0,
        skill_text("web").as_bytes()
    );
    assert!(matches!(
        get("none").await,
        Err(ClientError::Artifact(ArtifactError::NotInArchive(_)))
    ));
}
