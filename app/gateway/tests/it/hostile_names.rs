//! Path traversal attempts on every route with a name in its path.

use std::collections::BTreeSet;
use std::fs;

use harness::testkit::hostile_names;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::support::{Gateway, HttpResponse};
use crate::uploads::{BOUNDARY, form};

const CANARY: &str = "canary-51c7";
/// Characters that are not encoded in a path of several segments.
const WHOLE_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_');
/// One of this many names is sent to the routes that do not handle files.
const STRIDE: usize = 16;
/// Maximum length of a path that the URL parser accepts.
const MAX_PATH_LENGTH: usize = 65_000;

/// Returns a gateway with files next to those of its user's thread, and the thread.
async fn with_secret_files() -> (Gateway, String) {
    let gateway = Gateway::with_agents().with_channels(crate::channels::services());
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

fn assert_holds(gateway: &Gateway, response: &HttpResponse, what: &str) {
    let text = String::from_utf8_lossy(&response.body);
    assert!(response.code() < 500, "{what}: {} {text}", response.code());
    assert!(!text.contains(CANARY), "{what} returned a file");
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
async fn hostile_name_in_a_path_never_escapes_or_fails() {
    let (gateway, thread) = with_secret_files().await;
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
    // A router does not list its routes, but its debug output does.
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
                if path.len() > MAX_PATH_LENGTH {
                    continue;
                }
                for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                    let response = gateway
                        .send(method, &path, Some(serde_json::json!({})))
                        .await;
                    if response.code() == 405 {
                        continue;
                    }
                    assert_holds(
                        &gateway,
                        &response,
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
async fn hostile_name_of_an_upload_never_escapes() {
    let (gateway, thread) = with_secret_files().await;
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
    let mut accepted = 0;
    for name in &names {
        let what = format!("an upload named {name:?}");
        let name = name.replace(['"', '\r', '\n'], "");
        let response = gateway
            .raw(
                "POST",
                &format!("/api/threads/{thread}/uploads"),
                form(&[("files", &name, b"mine")]),
                &[BOUNDARY],
            )
            .await;
        assert_holds(&gateway, &response, &what);
        for file in response.json()["files"].as_array().into_iter().flatten() {
            let inside = file["virtual_path"]
                .as_str()
                .and_then(|path| path.strip_prefix("/mnt/user-data/uploads/"))
                .expect("a place");
            assert!(
                !inside.contains('/') && !inside.is_empty(),
                "{what}: {inside}"
            );
            accepted += 1;
        }
    }
    println!("{} names, {accepted} taken as plain ones", names.len());
    assert!(accepted > 0);
}
