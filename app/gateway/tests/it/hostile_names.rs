//! Names that are meant to get out, put to every route that takes one in its path.

use std::collections::BTreeSet;
use std::fs;

use harness::testkit::hostile_names;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::support::{Answer, Gateway};
use crate::uploads::{BOUNDARY, form};

const CANARY: &str = "canary-51c7";
/// What stands in a path of more than one part as it is.
const WHOLE_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_');
/// Of this many names one is put to the routes that have nothing to do with files.
const STRIDE: usize = 16;
/// The longest path that the parser of addresses takes.
const LONGEST: usize = 65_000;

/// A gateway with files beside those of its user's thread, and the thread.
async fn beside_secrets() -> (Gateway, String) {
    let gateway = Gateway::with_agents();
    let home = gateway.files.home.home();
    for folder in [
        home.to_owned(),
        home.join("outside"),
        home.join("users/ann"),
        home.join("users/default"),
    ] {
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("secret.txt"), CANARY).expect("a file");
    }
    let thread = gateway.thread().await;
    (gateway, thread)
}

fn assert_holds(gateway: &Gateway, answer: &Answer, what: &str) {
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.code() < 500, "{what}: {} {text}", answer.code());
    assert!(!text.contains(CANARY), "{what} gave a file away");
    let home = gateway.files.home.home();
    for file in [
        "secret.txt",
        "outside/secret.txt",
        "users/ann/secret.txt",
        "users/default/secret.txt",
    ] {
        assert_eq!(
            fs::read_to_string(home.join(file)).unwrap_or_default(),
            CANARY,
            "{what} changed {file}"
        );
    }
}

#[tokio::test]
async fn no_name_in_a_path_leads_a_route_outside_or_breaks_it() {
    let (gateway, thread) = beside_secrets().await;
    let names = hostile_names(
        gateway
            .files
            .home
            .home()
            .join("outside")
            .to_str()
            .expect("a path"),
        1,
    );
    let mut requests = 0;
    // A router does not list its routes; it prints them, though.
    let printed = format!("{:?}", gateway.router);
    let routes: BTreeSet<&str> = printed
        .split('"')
        .filter(|part| part.starts_with('/') && !part.contains("__private"))
        .collect();
    for route in routes {
        let about_files = ["artifacts", "uploads"]
            .iter()
            .any(|word| route.contains(word));
        for parameter in route
            .split('{')
            .skip(1)
            .filter_map(|part| Some(part.split_once('}')?.0))
        {
            for name in names.iter().step_by(if about_files { 1 } else { STRIDE }) {
                let kept = if parameter.starts_with('*') {
                    WHOLE_PATH
                } else {
                    NON_ALPHANUMERIC
                };
                let encoded = utf8_percent_encode(name, kept).to_string();
                let path = route
                    .replace(&format!("{{{parameter}}}"), &encoded)
                    .replace("{thread_id}", &thread)
                    .replace(['{', '*', '}'], "");
                if path.len() > LONGEST {
                    continue;
                }
                for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                    let answer = gateway
                        .send(method, &path, Some(serde_json::json!({})))
                        .await;
                    if answer.code() == 405 {
                        continue;
                    }
                    assert_holds(
                        &gateway,
                        &answer,
                        &format!("{method} {route} with {name:?}"),
                    );
                    requests += 1;
                }
            }
        }
    }
    assert!(requests > 2 * names.len(), "{requests}");
    println!("{} names, {requests} requests", names.len());
}

#[tokio::test]
async fn no_name_of_an_uploaded_file_leads_outside() {
    let (gateway, thread) = beside_secrets().await;
    let names = hostile_names(
        gateway
            .files
            .home
            .home()
            .join("outside")
            .to_str()
            .expect("a path"),
        1,
    );
    let mut taken = 0;
    for name in &names {
        let what = format!("an upload named {name:?}");
        let name = name.replace(['"', '\r', '\n'], "");
        let answer = gateway
            .raw(
                "POST",
                &format!("/api/threads/{thread}/uploads"),
                form(&[("files", &name, b"mine")]),
                &[BOUNDARY],
            )
            .await;
        assert_holds(&gateway, &answer, &what);
        for file in answer.json()["files"].as_array().into_iter().flatten() {
            let inside = file["virtual_path"]
                .as_str()
                .and_then(|path| path.strip_prefix("/mnt/user-data/uploads/"))
                .expect("a place");
            assert!(
                !inside.contains('/') && !inside.is_empty(),
                "{what}: {inside}"
            );
            taken += 1;
        }
    }
    println!("{} names, {taken} taken as plain ones", names.len());
    assert!(taken > 0);
}
