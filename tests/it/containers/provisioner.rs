//! Containers as pods of a provisioner.

use super::*;

#[tokio::test]
async fn provisioner_creates_pods_for_valid_key() {
    let (home, tasks) = (tempfile::tempdir().expect("home"), Tasks::new());
    let (server, state) = provisioner(Behavior::Good, "canary-key", home.path())
        .await
        .expect("a provisioner");
    let dirs = ThreadDirs::new(
        home.path().into(),
        Resolver::detect(),
        "ann",
        &ThreadId::parse("t1").expect("an id"),
    );
    let backend = |key: &str| {
        let url = format!("http://{}", server.address())
            .parse()
            .expect("an address");
        ContainerBackend::Provisioner(ProvisionerOptions {
            url,
            key: Some(key.into()),
            mounts: Vec::new(),
        })
    };
    let sandbox = opened(backend("canary-key"), rules(), &tasks);
    assert_eq!(
        run(&sandbox, &dirs, "echo $((6*7))").await.expect("a run"),
        (CommandEnd::Exited(0), "42\n".to_owned())
    );
    let order = state.order(&state.names()[0]).expect("creation request");
    assert_eq!(
        (&order["user_id"], &order["thread_id"]),
        (&json!("ann"), &json!("t1"))
    );

    state.behave(Behavior::Failing);
    let error = run(
        &opened(backend("canary-key"), rules(), &tasks),
        &dirs,
        "true",
    )
    .await
    .expect_err("no cluster");
    assert!(
        error
            .to_string()
            .contains("the provisioner responded with status 500: no cluster"),
        "{error}"
    );
    assert_eq!(
        (state.names().len(), state.count("remove")),
        (1, 0),
        "a failing provisioner loses no pod"
    );

    let error = run(&opened(backend("wrong"), rules(), &tasks), &dirs, "true")
        .await
        .expect_err("no key");
    assert!(
        error.to_string().contains("status 401") && !error.to_string().contains("wrong"),
        "{error}"
    );
}
