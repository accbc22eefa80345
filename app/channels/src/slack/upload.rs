//! Files that are sent: address, bytes, share.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::api::{Api, Body};
use super::failure::{Failure, platform_error};
use super::post::thread_of;
use crate::platform::{Delivery, FileBody, PlatformError, Sent, Target};

/// Progress of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    /// File that Slack has received.
    file: String,
    /// `true` once the share was requested.
    sharing: bool,
}

/// Uploads a file and shares it.
pub(super) async fn upload(
    api: &Api,
    target: &Target,
    file: &FileBody,
    delivery: &mut Delivery,
) -> Result<Sent, PlatformError> {
    let earlier = serde_json::from_value::<Progress>(delivery.progress.clone()).ok();
    let id = match earlier {
        Some(progress) if progress.sharing && is_shared(api, target, &progress.file).await => {
            return Ok(Sent::default());
        }
        Some(progress) => progress.file,
        None => transfer(api, file).await?,
    };
    let sharing = Progress {
        file: id.clone(),
        sharing: true,
    };
    delivery.progress = json!(sharing);
    match share(api, target, &id, &file.name).await {
        Ok(answer) => Ok(Sent {
            ids: share_ids(&answer, &target.chat.id),
        }),
        Err(failure) if failure.is(&["file_not_found", "file_deleted"]) => {
            // The file expired between two attempts; the next one uploads it again.
            delivery.progress = Value::Null;
            Err(PlatformError::Unavailable(
                "slack lost the uploaded file".to_owned(),
            ))
        }
        Err(failure) => Err(platform_error("files.completeUploadExternal", failure)),
    }
}

async fn transfer(api: &Api, file: &FileBody) -> Result<String, PlatformError> {
    if file.bytes.is_empty() {
        return Err(PlatformError::Refused(
            "slack accepts no empty files".to_owned(),
        ));
    }
    let method = "files.getUploadURLExternal";
    let fields = vec![
        ("filename", file.name.clone()),
        ("length", file.bytes.len().to_string()),
    ];
    let answer = api
        .call(method, Body::Form(fields))
        .await
        .map_err(|failure| platform_error(method, failure))?;
    let address = answer["upload_url"]
        .as_str()
        .and_then(|url| Url::parse(url).ok());
    let address = address.filter(|address| api.is_platform_address(address));
    let (Some(address), Some(id)) = (address, answer["file_id"].as_str()) else {
        return Err(PlatformError::Unavailable(
            "slack named no upload address".to_owned(),
        ));
    };
    let response = api.put_file(address, file.bytes.clone()).await?;
    if !response.status().is_success() {
        let status = response.status().as_u16();
        return Err(PlatformError::Unavailable(format!(
            "slack answered an upload with status {status}"
        )));
    }
    Ok(id.to_owned())
}

async fn share(api: &Api, target: &Target, id: &str, name: &str) -> Result<Value, Failure> {
    let files = json!([{"id": id, "title": name}]);
    let mut fields = vec![
        ("files", files.to_string()),
        ("channel_id", target.chat.id.clone()),
    ];
    if let Some(thread) = thread_of(target) {
        fields.push(("thread_ts", thread.to_owned()));
    }
    api.call("files.completeUploadExternal", Body::Form(fields))
        .await
}

/// Returns `true` if an earlier share had its effect.
async fn is_shared(api: &Api, target: &Target, id: &str) -> bool {
    let answer = api
        .call("files.info", Body::Form(vec![("file", id.to_owned())]))
        .await
        .unwrap_or(Value::Null);
    is_shared_in(&answer["file"], &target.chat.id)
}

fn is_shared_in(file: &Value, channel: &str) -> bool {
    let listed = ["channels", "groups", "ims"].iter().any(|kind| {
        let channels = file[*kind].as_array();
        channels.is_some_and(|channels| channels.iter().any(|listed| listed == channel))
    });
    listed || !share_ids(&json!({"files": [file]}), channel).is_empty()
}

/// Returns the timestamps under which an answer says that the files were shared.
fn share_ids(answer: &Value, channel: &str) -> Vec<String> {
    let files = answer["files"].as_array().into_iter().flatten();
    files
        .flat_map(|file| {
            ["public", "private"].map(|kind| file["shares"][kind][channel].as_array().cloned())
        })
        .flatten()
        .flatten()
        .filter_map(|share| share["ts"].as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_found_in_both_forms() {
        let file = json!({"shares": {"public": {"C1": [{"ts": "1.1"}]}}, "ims": ["D1"]});
        assert!(is_shared_in(&file, "C1"));
        assert!(is_shared_in(&file, "D1"));
        assert!(!is_shared_in(&file, "C2"));
        assert!(!is_shared_in(&Value::Null, "C1"));
        assert_eq!(share_ids(&json!({"files": [file]}), "C1"), ["1.1"]);
    }
}
